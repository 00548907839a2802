// Cross entropy of logits against class indices, summed or averaged over the rows that count.
#pragma once

#include "tensor/tensor.h"

namespace strata {

inline constexpr int64_t kIgnoreIndex = -100;

struct CrossEntropyOptions {
  int64_t ignore_index = kIgnoreIndex;  // rows with this target add 0 to the sum and 0 to the count
  bool mean = true;                     // divide by the number of counting rows; 0 such rows give 0, never NaN
};

/// logits [N, V] (any float dtype; log-sum-exp in f32, f64 for f64), targets [N] (i32 or i64) -> scalar, f32 (f64).
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions options = {});
/// Negative log likelihood of every row, [N]; 0 at ignored rows. No gradient: for evaluation.
Tensor token_nll(const Tensor& logits, const Tensor& targets, int64_t ignore_index = kIgnoreIndex);
/// cross_entropy(x w^T, targets) with mean = false, in chunks of rows: the logits are never whole, and rows with an
/// ignored target cost nothing. x [N, C], w [V, C] (16-bit w may meet f32 x), targets [N] -> scalar, f32 (f64).
/// The gradients of x and w are computed in the forward pass (as in Liger's fused linear cross entropy; Hsu et al.
/// 2024) and only scaled in the backward; there is no second derivative.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& targets,
                            int64_t ignore_index = kIgnoreIndex);

}  // namespace strata
