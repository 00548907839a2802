// Scaled dot-product attention over ragged batches, never holding [T, S] scores: blocked online softmax, forward and
// backward (Dao et al. 2022, "FlashAttention"). The formulas: tensor/kernels/attention.h.
#pragma once

#include "tensor/kernels/attention.h"

namespace strata {

/// q [N, H, D]; k, v [M, Hk, D] with H a multiple of Hk (query head h reads key head h / (H / Hk)); sequence s has
/// query rows `queries` and key rows `keys`. -> [N, H, D]; a query that sees no key, and a row of no sequence, gives
/// zeros. Keeps q, k, v, y and one number per query and head for backward. Key ranges may overlap (a shared prefix)
/// where k and v want no gradient. A sequence of at most 8 queries gives the same bits however they are grouped.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
                 AttentionOptions options = {});

}  // namespace strata
