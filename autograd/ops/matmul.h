// Matrix products. f16/bf16 accumulate in f32.
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// a [..., M, K] x b [..., K, N] -> [..., M, N]; leading axes broadcast; 1-D operands as in NumPy.
Tensor matmul(const Tensor& a, const Tensor& b);
/// x [..., K], w [N, K], b [N] or undefined -> x w^T + b, [..., N].
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = {});
/// y + scale * (x A^T) B^T, the low-rank term of LoRA (Hu et al. 2021) added to y in place of two temporaries:
/// y [..., N] (overwritten unless it wants to be kept), x [..., K], A [r, K], B [N, r].
Tensor add_low_rank(const Tensor& y, const Tensor& x, const Tensor& a, const Tensor& b, double scale);

}  // namespace strata
