# Compile flags shared by library, programs and tests: link strata_flags PRIVATE.
add_library(strata_flags INTERFACE)
# -Wno-restrict: GCC 12 reports std::string concatenation falsely (GCC bug 105329).
target_compile_options(strata_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas -Wno-restrict)
# No errno and no trapping maths: lets loops with sqrt, exp and comparisons vectorise; results stay IEEE.
target_compile_options(strata_flags INTERFACE -fno-math-errno -fno-trapping-math)
if(STRATA_NATIVE)
  target_compile_options(strata_flags INTERFACE -march=native)
endif()
if(STRATA_SANITIZE)
  # -Wno-maybe-uninitialized: reports falsely in instrumented code (GCC's manual, -fsanitize).
  target_compile_options(strata_flags INTERFACE -fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all -Wno-maybe-uninitialized)
  target_link_options(strata_flags INTERFACE -fsanitize=${STRATA_SANITIZE})
endif()
