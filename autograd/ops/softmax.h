// softmax y_i = exp(x_i - max) / sum_j exp(x_j - max) along one axis, and its logarithm.
#pragma once

#include "tensor/tensor.h"

namespace strata {

Tensor softmax(const Tensor& x, int64_t axis = -1);
Tensor log_softmax(const Tensor& x, int64_t axis = -1);

}  // namespace strata
