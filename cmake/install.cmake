# find_package(strata) works after install; tests/package proves it.
