#include "tensor/parallel.h"

#include <cblas.h>
#include <omp.h>

#include <exception>

#include "tensor/error.h"

namespace strata {

int num_threads() {
  return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void set_num_threads(int n) {
  check<UsageError>(n >= 1, "threads: must be at least 1, got {}", n);
  omp_set_num_threads(n);
  openblas_set_num_threads(n);
}

namespace detail {

void run_parallel(int64_t chunks, const std::function<void(int64_t)>& chunk) {
  if (chunks == 1 || num_threads() == 1) {
    for (int64_t i = 0; i < chunks; ++i) chunk(i);
    return;
  }
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < chunks; ++i) {
    try {
      chunk(i);
    } catch (...) {
#pragma omp critical(strata_parallel_error)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

}  // namespace strata
