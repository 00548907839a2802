// Softmax over the last axis of contiguous x, y [..., C]; sums in f32 (f64 for f64).
//   softmax:      y_i = exp(x_i - max x) / sum_j exp(x_j - max x)       dx = y * (dy - sum_j dy_j y_j)
//   log_softmax:  y_i = x_i - max x - log sum_j exp(x_j - max x)        dx = dy - exp(y) * sum_j dy_j
// A row of -inf alone has no softmax: NaN.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

using SoftmaxKernel = Kernel<void(const Tensor& x, const Tensor& y)>;
using SoftmaxBackwardKernel = Kernel<void(const Tensor& dy, const Tensor& y, const Tensor& dx)>;

inline constinit SoftmaxKernel softmax{"softmax"}, log_softmax{"log_softmax"};
inline constinit SoftmaxBackwardKernel softmax_backward{"softmax_backward"},
    log_softmax_backward{"log_softmax_backward"};

}  // namespace strata::kernels
