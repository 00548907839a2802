// Products with few rows: y[m, n] = alpha * sum_k x[m, k] w[n, k] (+ y[m, n]) for M <= kFewRows. A decoding step is
// this: w is read once, in its own dtype, at the speed of memory. Each sum runs in the same order whatever M, N and the
// number of threads: a row gives the same bits alone and in company.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int64_t kFewRows = 8;

/// T float or double; W is T, or Half or BFloat16 where T is float. Strides in elements; both operands have unit stride
/// along k.
template <class T, class W>
struct FewRows {
  const T* x;
  int64_t x_stride;
  const W* w;
  int64_t w_stride;
  T* y;
  int64_t y_row, y_col;
  int64_t M, N, K;
  T alpha;
  bool accumulate;
};

template <class T, class W>
void multiply_few_rows(const FewRows<T, W>& p);

}  // namespace strata
