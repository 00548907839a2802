// Scaled dot-product attention over ragged batches, never holding [T, S] scores: blocked online softmax, forward and
// backward (Dao et al. 2022, "FlashAttention").
#pragma once

#include "tensor/ragged.h"
#include "tensor/tensor.h"

namespace strata {

struct AttentionOptions {
  bool causal = true;       // query i of a sequence of T, with S keys, sees keys 0 .. S - T + i
  double scale = 0;         // 0: 1 / sqrt(D)
  int64_t window = 0;       // > 0: only the last `window` of those keys (itself included)
  double softcap = 0;       // > 0: scores s become softcap * tanh(s / softcap), before the mask
};

/// q [N, H, D]; k, v [M, Hk, D] with H a multiple of Hk (query head h reads key head h / (H / Hk)); sequence s has
/// query rows `queries` and key rows `keys`. -> [N, H, D]; a query that sees no key gives zeros.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
                 AttentionOptions options = {});

}  // namespace strata
