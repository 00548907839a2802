// Matrix products, batched: a [B..., M, K], b [B..., K, N], y [B..., M, N]. The batch axes have been broadcast to one
// shape (strides may be 0); a and b may have any strides, y is row-major. 2 M N K operations per batch entry.
//   y = alpha * a b           (accumulate: y += alpha * a b)
// Either all three are f64, or each is f32, f16 or bf16: then sums run in f32 and y is rounded once.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

struct MatmulOptions {
  double alpha = 1;
  bool accumulate = false;
};

inline constinit Kernel<void(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options)> matmul{
    "matmul"};

}  // namespace strata::kernels
