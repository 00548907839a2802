// Matrix products. Operands are all f64, or f32, f16 and bf16 in any mixture: a 16-bit weight may meet f32 activations
// and stays as it is. The result is f32 if one of the two operands is, else theirs. Sums run in f32 (f64), rounded
// once.
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// a [..., M, K] x b [..., K, N] -> [..., M, N]; leading axes broadcast; 1-D operands as in NumPy.
Tensor matmul(const Tensor& a, const Tensor& b);
/// x [..., K], w [N, K], b [N] or undefined -> x w^T + b, [..., N].
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = {});

/// A linear layer with its low-rank term (LoRA, Hu et al. 2021) as one operation without temporaries of the output's
/// size: x w^T + bias + scale (x A^T) B^T; x [..., K], w [N, K], bias [N] or undefined, A [r, K], B [N, r]. Keeps x and
/// x A^T for the gradient; a frozen w costs nothing but the gradient of x.
Tensor linear_low_rank(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& a, const Tensor& b,
                       double scale);
/// y + scale (x A^T) B^T, written over y's bytes: for a base that is not a plain matrix, or an x of its own (dropout).
/// y [..., N] must be a fresh result that nobody else will read; where a formula saved it (or it is a leaf that wants
/// gradients, a mapped file or not row-major) the sum gets memory of its own. Go on with the result, not with y.
Tensor add_low_rank_(const Tensor& y, const Tensor& x, const Tensor& a, const Tensor& b, double scale);

}  // namespace strata
