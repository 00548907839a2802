// Reductions. x is strided; y is contiguous and has the reduced axes as size 1.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// y = sum of x over the axes where y has size 1 and x has not.
inline constinit Kernel<void(const Tensor& x, const Tensor& y)> sum{"sum"};
/// Greatest value and its first index (i64) along `axis`; either output may be undefined.
inline constinit Kernel<void(const Tensor& x, int axis, const Tensor& values, const Tensor& indices)> max{"max"};
/// finite = x holds no NaN and no infinity.
inline constinit Kernel<void(const Tensor& x, bool& finite)> all_finite{"all_finite"};

}  // namespace strata::kernels
