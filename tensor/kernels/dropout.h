// y[i] = x[i] / (1 - p) where the Philox word of element i says keep, else 0. Element i (row-major) uses word i % 4 of
// block first + i / 4 of stream `seed`; it is kept where uniform(word) >= p.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

struct DropoutMask {
  uint64_t seed, first;  // stream and its first block
  double p;
};
/// x and y contiguous, float; y may be x.
inline constinit Kernel<void(const Tensor& x, const DropoutMask& mask, const Tensor& y)> dropout{"dropout"};

}  // namespace strata::kernels
