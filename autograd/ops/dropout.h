// Inverted dropout: y = x * mask / (1 - p), mask from Philox words of `generator` (element i uses word i % 4 of block i
// / 4).
#pragma once

#include "tensor/random.h"
#include "tensor/tensor.h"

namespace strata {

/// p in [0, 1); p = 0 returns x. Keeps no mask: backward draws it again.
Tensor dropout(const Tensor& x, double p, Generator& generator = default_generator());

}  // namespace strata
