// Rotary position embedding (Su et al. 2021), half-split pairing as in Hugging Face's layout: pair (i, i + D/2).
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// x [N, H, D]; cos, sin [P, R/2] for R <= D rotated dimensions; positions [N] (i32) < P.
/// y_i = x_i cos - x_{i+R/2} sin, y_{i+R/2} = x_{i+R/2} cos + x_i sin; the rest is copied.
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions);

}  // namespace strata
