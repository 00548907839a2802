# `cmake --install build/release --prefix P` gives P/include/strata (headers under their layer folders, so that
# #include "tensor/tensor.h" reads the same inside and outside), P/lib and P/lib/cmake/strata, where
# find_package(strata) finds strata::strata. tests/package proves it.
include(CMakePackageConfigHelpers)
set(STRATA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/strata)

install(TARGETS strata EXPORT strata-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY tensor autograd nn optim data models DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/strata
        FILES_MATCHING PATTERN "*.h")
install(EXPORT strata-targets NAMESPACE strata:: DESTINATION ${STRATA_CMAKE_DIR})

configure_package_config_file(cmake/strata-config.cmake.in ${PROJECT_BINARY_DIR}/strata-config.cmake
                              INSTALL_DESTINATION ${STRATA_CMAKE_DIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/strata-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/strata-config.cmake ${PROJECT_BINARY_DIR}/strata-config-version.cmake
        DESTINATION ${STRATA_CMAKE_DIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/strata)
