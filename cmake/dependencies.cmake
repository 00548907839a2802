# Every library comes from the distribution; DESIGN and README list the Debian package of each.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
# The openmp flavour shares our thread pool; Debian puts its .pc file in a folder of its own.
file(GLOB openblas_openmp_dirs /usr/lib/*/openblas-openmp/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "$ENV{PKG_CONFIG_PATH}:${openblas_openmp_dirs}")
pkg_check_modules(openblas REQUIRED IMPORTED_TARGET openblas)
find_path(STRATA_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-openmp x86_64-linux-gnu/openblas-openmp
          aarch64-linux-gnu/openblas-openmp openblas REQUIRED)
