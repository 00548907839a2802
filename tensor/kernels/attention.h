// Scaled dot-product attention over ragged batches. N query rows, M key rows, H query heads, Hk key heads, D head size;
// query head h reads key head h / (H / Hk). For query i of a sequence with T queries and S keys:
//   s_ij = scale q_i . k_j, capped: softcap tanh(s / softcap)     j in [lo(i), hi(i)], see visible_keys
//   p_ij = exp(s_ij - lse_i), lse_i = log sum_j exp(s_ij)
//   y_i = sum_j p_ij v_j                                          0 where no key is visible (lse = -inf)
// Backward, delta_i = dy_i . y_i:
//   dv_j = sum_i p_ij dy_i;  dz_ij = p_ij (dy_i . v_j - delta_i) (1 - (s_ij / softcap)^2)
//   dq_i = scale sum_j dz_ij k_j;  dk_j = scale sum_i dz_ij q_i   (sums over i run over the group's query heads too)
// Scores exist only as tiles of a few dozen queries by a few dozen keys. (Dao et al. 2022, 2023, "FlashAttention")
#pragma once

#include <algorithm>

#include "tensor/kernel.h"
#include "tensor/ragged.h"
#include "tensor/tensor.h"

namespace strata {

struct AttentionOptions {
  bool causal = true;  // query i of a sequence of T, with S keys, sees keys 0 .. S - T + i
  double scale = 0;    // 0: 1 / sqrt(D)
  int64_t window = 0;  // > 0: only the last `window` of those keys (itself included)
  double softcap = 0;  // > 0: scores s become softcap * tanh(s / softcap), before the mask
};

/// Keys [first, last) that query i of T sees among S; last <= first: none.
struct KeyRange {
  int64_t first, last;
};
STRATA_HD inline KeyRange visible_keys(int64_t i, int64_t T, int64_t S, bool causal, int64_t window) {
  int64_t last = causal ? S - T + i + 1 : S;
  int64_t first = window > 0 && last > window ? last - window : 0;
  return {first, last};
}

namespace kernels {

/// q, y [N, H, D], k, v [M, Hk, D] of one dtype, unit stride along D, y contiguous; lse [N, H] f32 (f64 for f64) or
/// undefined. options.scale is set. Rows of no sequence are left alone.
inline constinit Kernel<void(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries,
                             const Ragged& keys, const AttentionOptions& options, const Tensor& y, const Tensor& lse)>
    attention{"attention"};

/// What attention_backward reads and writes; any of dq, dk, dv may be undefined. dq, dk, dv are contiguous, of the
/// inputs' dtype; rows of no sequence are left alone. Key ranges must not overlap.
struct AttentionGradients {
  Tensor q, k, v, y, lse, dy;
  Tensor dq, dk, dv;
};
inline constinit Kernel<void(const AttentionGradients& t, const Ragged& queries, const Ragged& keys,
                             const AttentionOptions& options)>
    attention_backward{"attention_backward"};

}  // namespace kernels

}  // namespace strata
