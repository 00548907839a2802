// Normalisation over the last axis, C values; statistics in f32 (f64 for f64), rounded once at the end.
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// y = x / sqrt(mean(x^2) + eps) * (w + offset); w [C] or undefined (1). (Zhang & Sennrich 2019; offset 1: Gemma)
Tensor rms_norm(const Tensor& x, const Tensor& w, double eps = 1e-5, double offset = 0);
/// y = (x - mean) / sqrt(var + eps) * w + b; w, b [C], both may be undefined (1, 0). (Ba et al. 2016)
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps = 1e-5);

}  // namespace strata
