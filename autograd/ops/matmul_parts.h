// What the products share: checks and launches without a graph. For the ops' own files.
#pragma once

#include "autograd/ops/rows.h"
#include "tensor/kernels/matmul.h"

namespace strata {

/// f32 if one of the two is, else theirs; f64 meets f64 alone.
DType product_dtype(const char* op, const Tensor& a, const Tensor& b);
/// x [..., K], w [N, K], bias [N] or undefined.
void check_linear(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias);
/// x w^T + bias in fresh memory, no graph.
Tensor linear_forward(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias);

/// y = alpha a b, or y += alpha a b; no graph.
inline void multiply(const Tensor& a, const Tensor& b, const Tensor& y, double alpha = 1, bool accumulate = false) {
  kernels::matmul(y.device(), a, b, y, kernels::MatmulOptions{alpha, accumulate});
}
/// A matrix with its axes swapped; no graph.
inline Tensor transposed(const Tensor& t) {
  return alias(t, t.layout().transpose(0, 1));
}

}  // namespace strata
