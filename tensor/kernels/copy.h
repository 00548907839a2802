// copy: y[i] = convert(x[i]); fill: y[i] = value. x has been broadcast to y's shape; both may be strided.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

inline constinit Kernel<void(const Tensor& x, const Tensor& y)> copy{"copy"};
inline constinit Kernel<void(const Tensor& y, double value)> fill{"fill"};

}  // namespace strata::kernels
