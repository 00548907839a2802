// Matrix products as three loops in double.
#pragma once

#include "tests/reference/array.h"

namespace strata::reference {

/// a [..., M, K] x b [..., K, N], leading axes broadcast; a 1-D operand is a row (left) or a column (right), and its
/// axis disappears again.
inline Array matmul(Array a, Array b) {
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a.shape.insert(0, 1);
  if (column) b.shape.push_back(1);
  int64_t M = a.shape[a.rank() - 2], K = a.shape.back(), N = b.shape.back();
  Dims a_batch = a.shape, b_batch = b.shape;
  for (int i = 0; i < 2; ++i) {
    a_batch.erase(a_batch.size() - 1);
    b_batch.erase(b_batch.size() - 1);
  }
  Dims batch = common_shape(a_batch, b_batch);
  auto with = [&](int64_t rows, int64_t columns) {
    Dims shape = batch;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  };
  Array x = broadcast(a, with(M, K)), w = broadcast(b, with(K, N)), y(with(M, N));
  for (int64_t e = 0; e < numel(batch); ++e)
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n)
        for (int64_t k = 0; k < K; ++k) y[(e * M + m) * N + n] += x[(e * M + m) * K + k] * w[(e * K + k) * N + n];
  if (column) y.shape.erase(y.rank() - 1);
  if (row) y.shape.erase(column ? y.rank() - 1 : y.rank() - 2);
  return y;
}

inline Array transpose(const Array& x) {
  Array y({x.shape[1], x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i)
    for (int64_t j = 0; j < x.shape[1]; ++j) y.at({j, i}) = x.at({i, j});
  return y;
}

/// x w^T.
inline Array linear(const Array& x, const Array& w) {
  return matmul(x, transpose(w));
}
/// x w^T + bias.
inline Array linear(const Array& x, const Array& w, const Array& bias) {
  return map(linear(x, w), bias, [](double y, double b) { return y + b; });
}
/// y + scale (x a^T) b^T.
inline Array add_low_rank(const Array& y, const Array& x, const Array& a, const Array& b, double scale) {
  return map(y, linear(linear(x, a), b), [scale](double base, double term) { return base + scale * term; });
}

}  // namespace strata::reference
