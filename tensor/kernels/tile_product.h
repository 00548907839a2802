// A small matrix product on one core, c = a b or c += a b, with c [M, N], a [M, K], b [K, N]: what attention's tiles
// are made of. Each element of c is summed over k in order in one register, so its bits depend on nothing but K.
#pragma once

#include <algorithm>
#include <cstdint>

namespace strata::tile {

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
inline constexpr int kLanes = 32 / sizeof(T);
/// N must be a multiple of this: two vector registers.
template <class T>
inline constexpr int kPanel = 2 * kLanes<T>;
inline constexpr int kRows = 6;  // rows of c held in registers at once: 12 accumulators

template <class T>
constexpr int64_t round_up(int64_t n) {
  return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
}

/// a(m, k) = data[m * row + k * column].
template <class T>
struct Left {
  const T* data;
  int64_t row, column;
};

/// b(k, n) = data[n / kPanel * panel + k * row + n % kPanel]. Row-major: panel = kPanel, row = leading dimension.
template <class T>
struct Right {
  const T* data;
  int64_t panel, row;
};

namespace detail {

template <class T, int rows>
inline void block(const Left<T>& a, const T* b, int64_t b_row, int64_t K, T* c, int64_t c_row, bool accumulate) {
  using V = Vector<T>;
  V sum[rows][2] = {};
  for (int64_t k = 0; k < K; ++k) {
    V b0 = *reinterpret_cast<const V*>(b + k * b_row);
    V b1 = *reinterpret_cast<const V*>(b + k * b_row + kLanes<T>);
    const T* column = a.data + k * a.column;
#pragma GCC unroll 6
    for (int i = 0; i < rows; ++i) {
      T left = column[i * a.row];
      sum[i][0] += left * b0;
      sum[i][1] += left * b1;
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
    V* out = reinterpret_cast<V*>(c + i * c_row);
    V* out1 = reinterpret_cast<V*>(c + i * c_row + kLanes<T>);
    *out = accumulate ? *out + sum[i][0] : sum[i][0];
    *out1 = accumulate ? *out1 + sum[i][1] : sum[i][1];
  }
}

}  // namespace detail

template <class T>
void product(int64_t M, int64_t N, int64_t K, const Left<T>& a, const Right<T>& b, T* c, int64_t c_row,
             bool accumulate) {
  for (int64_t n = 0; n < N; n += kPanel<T>) {
    const T* panel = b.data + n / kPanel<T> * b.panel;
    for (int64_t m = 0; m < M; m += kRows) {
      Left<T> rows{a.data + m * a.row, a.row, a.column};
      T* out = c + m * c_row + n;
      switch (std::min<int64_t>(kRows, M - m)) {
        case 1: detail::block<T, 1>(rows, panel, b.row, K, out, c_row, accumulate); break;
        case 2: detail::block<T, 2>(rows, panel, b.row, K, out, c_row, accumulate); break;
        case 3: detail::block<T, 3>(rows, panel, b.row, K, out, c_row, accumulate); break;
        case 4: detail::block<T, 4>(rows, panel, b.row, K, out, c_row, accumulate); break;
        case 5: detail::block<T, 5>(rows, panel, b.row, K, out, c_row, accumulate); break;
        default: detail::block<T, 6>(rows, panel, b.row, K, out, c_row, accumulate); break;
      }
    }
  }
}

}  // namespace strata::tile
