// Attention of sequences with few queries: a decoding step, or a short piece of a prompt over a long cache. Keys and
// values are read where they lie, once per key head.
#pragma once

#include "tensor/kernels/attention.h"

namespace strata {

inline constexpr int64_t kFewQueries = 8;

/// Handles the sequences with at most kFewQueries queries. T the tensors' type, A = compute_t<T>.
template <class T, class A>
void attention_few(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
                   const AttentionOptions& options, const Tensor& y, const Tensor& lse);

}  // namespace strata
