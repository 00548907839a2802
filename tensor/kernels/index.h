// Reading and writing by index. ids are contiguous i32 or i64 and in range; everything else is contiguous.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// position = that of the first id outside [0, limit), -1 if there is none.
inline constinit Kernel<void(const Tensor& ids, int64_t limit, int64_t& position)> first_outside{"first_outside"};
/// y[m, :] = x[ids[m], :]; x [V, C], ids [M], y [M, C]; any dtype.
inline constinit Kernel<void(const Tensor& x, const Tensor& ids, const Tensor& y)> index_select{"index_select"};
/// dx[v, :] = sum of dy[m, :] over the m with ids[m] = v, in the order of m; 0 where there is none.
inline constinit Kernel<void(const Tensor& dy, const Tensor& ids, const Tensor& dx)> index_add{"index_add"};
/// y[r, m] = x[r, ids[r, m]]; x [R, N], ids and y [R, M]; any dtype.
inline constinit Kernel<void(const Tensor& x, const Tensor& ids, const Tensor& y)> gather{"gather"};
/// dx[r, n] = sum of dy[r, m] over the m with ids[r, m] = n, in the order of m; 0 where there is none.
inline constinit Kernel<void(const Tensor& dy, const Tensor& ids, const Tensor& dx)> scatter_add{"scatter_add"};

}  // namespace strata::kernels
