// y[i] = keep(i) ? x[i] / (1 - p) : 0 with keep(i) = U(word i % 4 of Philox block first + i / 4) >= p.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// Blocks [first, first + ceil(n / 4)) of stream `seed`.
struct DropoutMask {
  double p;
  uint64_t seed;
  uint64_t first;
};
/// x and y contiguous.
inline constinit Kernel<void(const Tensor& x, const DropoutMask& mask, const Tensor& y)> dropout{"dropout"};

}  // namespace strata::kernels
