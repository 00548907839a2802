// Optimizer updates, one pass over a parameter; everything contiguous. Parameter and moments are f32 (f64 with f64
// gradients); gradients of an f32 parameter may be f16 or bf16.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// AdamW (Loshchilov & Hutter 2019): p *= 1 - lr wd; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
/// p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps). g is multiplied by grad_scale first (clipping).
struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;  // t, from 1
  double grad_scale = 1;
};
inline constinit Kernel<void(const Tensor& p, const Tensor& g, const Tensor& m, const Tensor& v, const AdamWStep&)>
    adamw{"adamw"};

/// SGD: g = grad_scale g + wd p; buffer = momentum buffer + (1 - dampening) g (buffer = g at the first step, which
/// reads no buffer); g = nesterov ? g + momentum buffer : buffer; p -= lr g. buffer is undefined where momentum is 0.
/// (Sutskever et al. 2013)
struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first;
  double grad_scale = 1;
};
inline constinit Kernel<void(const Tensor& p, const Tensor& g, const Tensor& buffer, const SgdStep&)> sgd{"sgd"};

/// sum of squares of g, in f64, independent of the number of threads.
inline constinit Kernel<void(const Tensor& g, double& sum)> sum_of_squares{"sum_of_squares"};

}  // namespace strata::kernels
