# package.consumer: another project finds the installed library, compiles against it and runs. The consumer knows nothing
# of sanitizers, so it is left out there.
if(NOT STRATA_SANITIZE)
  add_test(NAME package.consumer
           COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${CMAKE_CURRENT_LIST_DIR}
                   -DWORK=${PROJECT_BINARY_DIR}/package -DGENERATOR=${CMAKE_GENERATOR} -DCOMPILER=${CMAKE_CXX_COMPILER}
                   -P ${CMAKE_CURRENT_LIST_DIR}/run.cmake)
  set_tests_properties(package.consumer PROPERTIES LABELS package TIMEOUT 300)
endif()
