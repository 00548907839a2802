// Reductions; f16/bf16 accumulate in f32, f32 in f32 (pairwise within a row), f64 in f64.
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// Over `axes` (all if empty); keep_dims leaves axes of size 1.
Tensor sum(const Tensor& x, const Dims& axes = {}, bool keep_dims = false);
Tensor mean(const Tensor& x, const Dims& axes = {}, bool keep_dims = false);
/// Sums broadcast axes away until the shape is `shape` (the reverse of broadcasting).
Tensor sum_to(const Tensor& x, const Dims& shape);
/// Greatest element along `axis`; the gradient goes to the first of equals.
Tensor max(const Tensor& x, int64_t axis, bool keep_dims = false);
/// i64 index of the first greatest element along `axis`; no gradient.
Tensor argmax(const Tensor& x, int64_t axis);
/// No NaN and no infinity.
bool all_finite(const Tensor& x);

}  // namespace strata
