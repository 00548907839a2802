// Initial values. Each parameter draws from its own stream, derived from (seed, name): the order of construction and
// the device do not matter.
#pragma once

#include "nn/module.h"
#include "tensor/random.h"

namespace strata::nn {

/// U(-bound, bound) with bound = gain * sqrt(3 / fan_in); gain sqrt(2 / (1 + a^2)), fan_in = size of the last axes.
/// a = sqrt(5) is PyTorch's default for Linear and PEFT's for LoRA A. (He et al. 2015)
void kaiming_uniform_(const Tensor& w, double a, Generator& generator);
void kaiming_normal_(const Tensor& w, Generator& generator);
/// U(-b, b), b = sqrt(6 / (fan_in + fan_out)). (Glorot & Bengio 2010)
void xavier_uniform_(const Tensor& w, Generator& generator);

}  // namespace strata::nn
