// Gradient clipping by the norm over all parameters together (Pascanu et al. 2013).
#pragma once

#include "nn/module.h"

namespace strata::optim {

/// sqrt of the sum of squares over all gradients, accumulated in f64. Parameters without a gradient count 0.
double grad_norm(const std::vector<nn::NamedTensor>& parameters);
/// Scales all gradients by max_norm / norm where norm > max_norm. Returns the norm before clipping.
double clip_grad_norm(const std::vector<nn::NamedTensor>& parameters, double max_norm);

}  // namespace strata::optim
