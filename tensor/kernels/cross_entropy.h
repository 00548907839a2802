// Cross entropy of rows of logits x [N, V] against classes t [N] (i64; checked to be in [0, V) or ignored).
//   nll_r = log sum_j exp(x_rj) - x_rt      0 where t_r is ignored
//   dx_rj = (exp(x_rj - log sum) - [j = t_r]) * g      exactly 0 where t_r is ignored
// The log-sum-exp is kept as two numbers a row, max and log sum exp(x - max), because their sum loses digits when the
// logits are large. nll, statistics and g: f32 (f64 for f64 logits). x is contiguous.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// nll [N]; statistics [N, 2], untouched at ignored rows.
inline constinit Kernel<void(const Tensor& x, const Tensor& t, int64_t ignore_index, const Tensor& nll,
                             const Tensor& statistics)>
    cross_entropy{"cross_entropy"};
/// g = dy * scale, dy a scalar. dx may be x.
inline constinit Kernel<void(const Tensor& x, const Tensor& t, int64_t ignore_index, const Tensor& statistics,
                             const Tensor& dy, double scale, const Tensor& dx)>
    cross_entropy_backward{"cross_entropy_backward"};

}  // namespace strata::kernels
