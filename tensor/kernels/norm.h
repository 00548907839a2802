// Normalisation of rows: x, y, dy, dx [R, C]; mean, rstd [R]; w, b, dw, db [C]. All contiguous; statistics, w, b, dw,
// db in f32 (f64 for f64 x).
//   rms_norm:    rstd = 1 / sqrt(mean(x^2) + eps)      xhat = x rstd             y = xhat (w + offset)
//   layer_norm:  rstd = 1 / sqrt(var(x) + eps)         xhat = (x - mean) rstd    y = xhat w + b
// With g = dy w:  dx = rstd (g - mean(g) - xhat mean(g xhat))  (rms_norm: without mean(g)),  dw = sum_r dy xhat,  db =
// sum_r dy. xhat is computed again from x; nothing but the statistics is kept. The sums over rows do not depend on the
// number of threads.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// w (then 1) and b (then 0) may be undefined.
inline constinit Kernel<void(const Tensor& x, const Tensor& w, double offset, double eps, const Tensor& y,
                             const Tensor& rstd)>
    rms_norm{"rms_norm"};
inline constinit Kernel<void(const Tensor& x, const Tensor& w, const Tensor& b, double eps, const Tensor& y,
                             const Tensor& mean, const Tensor& rstd)>
    layer_norm{"layer_norm"};

/// Gradients that are undefined are not computed.
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, const Tensor& w, double offset, const Tensor& rstd,
                             const Tensor& dx, const Tensor& dw)>
    rms_norm_backward{"rms_norm_backward"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, const Tensor& w, const Tensor& mean, const Tensor& rstd,
                             const Tensor& dx, const Tensor& dw, const Tensor& db)>
    layer_norm_backward{"layer_norm_backward"};

}  // namespace strata::kernels
