// Rotary position embedding. x, y [N, H, D]; cos, sin [P, R/2], R <= D; row n has position t = positions[n]; i < R/2:
//   y[n, h, i]       = x[n, h, i] c - x[n, h, i + R/2] s       c = cos[t, i], s = sin[t, i]
//   y[n, h, i + R/2] = x[n, h, i + R/2] c + x[n, h, i] s       the rest is copied
// A rotation: the gradient is the inverse, with -s. Reads and writes x once; bound by memory.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// x with unit stride along D, y contiguous, of one float dtype; cos, sin contiguous f32 (or f64); positions contiguous
/// i32 or i64 within [0, P).
inline constinit Kernel<void(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions,
                             bool inverse, const Tensor& y)>
    rope{"rope"};

}  // namespace strata::kernels
