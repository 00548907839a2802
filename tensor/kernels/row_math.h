// Sums and maxima along one contiguous row, for the CPU kernels of softmax, cross_entropy and norm. The order of
// summation is fixed by the length alone: vector lanes within a block, blocks in double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tensor/dtype.h"
#include "tensor/kernels/fast_math.h"

namespace strata::rows {

inline constexpr int64_t kBlock = 1024;  // 4 KB of f32: a block stays in the first cache between two passes

/// sum of term(i) for i in [0, n); term gives A (float or double).
template <class A, class F>
inline double sum(int64_t n, F&& term) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t end = std::min(n, begin + kBlock);
    A part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) part += term(i);
    total += part;
  }
  return total;
}

template <class T>
inline compute_t<T> max(const T* x, int64_t n) {
  using A = compute_t<T>;
  A best = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : best)
  for (int64_t i = 0; i < n; ++i) best = std::max(best, convert<A>(x[i]));
  return best;
}

/// max x and log(sum exp(x - max x)), in one pass over memory.
template <class A>
struct LogSumExp {
  A max;
  A log_sum;
};

template <class T>
inline LogSumExp<compute_t<T>> log_sum_exp(const T* x, int64_t n) {
  using A = compute_t<T>;
  A best = -std::numeric_limits<A>::infinity();
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const T* block = x + begin;
    int64_t length = std::min(n - begin, kBlock);
    A top = std::max(best, max(block, length));
    if (top > best) {
      total *= std::exp(static_cast<double>(best) - static_cast<double>(top));
      best = top;
    }
    total += sum<A>(length, [&](int64_t i) { return math::exp(convert<A>(block[i]) - best); });
  }
  return {best, static_cast<A>(std::log(total))};
}

}  // namespace strata::rows
