// Rotary position embedding (Su et al. 2021), half-split pairing as in Hugging Face's layout: pair (i, i + R/2).
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// x [N, H, D]; cos, sin [P, R/2] (f32 or f64) for R <= D rotated dimensions; positions [N] (i32 or i64) < P.
/// y_i = x_i cos - x_{i+R/2} sin, y_{i+R/2} = x_{i+R/2} cos + x_i sin; the rest is copied. The gradient of x alone.
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions);

}  // namespace strata
