// Normalisation over the last axis, C values; statistics in f32 (f64 for f64).
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// y = x / sqrt(mean(x^2) + eps) * w; w [C]. (Zhang & Sennrich 2019)
Tensor rms_norm(const Tensor& x, const Tensor& w, double eps = 1e-5);
/// y = (x - mean) / sqrt(var + eps) * w + b; w, b [C], b may be undefined. (Ba et al. 2016)
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps = 1e-5);

}  // namespace strata
