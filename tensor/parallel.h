// One thread pool for everything: OpenMP's, shared with OpenBLAS.
#pragma once

#include <cstdint>
#include <functional>

namespace strata {

int num_threads();
/// Threads for kernels and BLAS; n >= 1.
void set_num_threads(int n);

namespace detail {
void run_parallel(int64_t chunks, const std::function<void(int64_t)>& chunk);
}

/// Calls f(begin, end) on parts of [0, count) of at least `grain` items, in parallel. Which part runs where is
/// fixed by count, grain and num_threads() alone. Nested calls run serially. Exceptions reach the caller.
template <class F>
void parallel_for(int64_t count, int64_t grain, F&& f) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  int64_t parts = (count + grain - 1) / grain;
  if (int64_t threads = num_threads(); parts > threads) parts = threads;
  if (parts <= 1) {
    f(int64_t{0}, count);
    return;
  }
  detail::run_parallel(parts, [&](int64_t part) { f(count * part / parts, count * (part + 1) / parts); });
}

/// Like parallel_for, item by item with dynamic scheduling, for items of very different cost: f(item).
template <class F>
void parallel_items(int64_t count, F&& f) {
  detail::run_parallel(count, [&](int64_t item) { f(item); });
}

}  // namespace strata
