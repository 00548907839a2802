// Rows by index. x [V, C], ids [M] (i32 or i64, within [0, V)), y [M, C]; all contiguous, C elements a row.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

/// y[m, :] = x[ids[m], :], any dtype.
inline constinit Kernel<void(const Tensor& x, const Tensor& ids, const Tensor& y)> gather_rows{"gather_rows"};
/// x[ids[m], :] += y[m, :], in the order of m for every row of x: the same bits for any number of threads.
inline constinit Kernel<void(const Tensor& y, const Tensor& ids, const Tensor& x)> add_rows{"add_rows"};
/// y[r, m] = x[r, ids[r, m]] for x [R, N], ids and y [R, M].
inline constinit Kernel<void(const Tensor& x, const Tensor& ids, const Tensor& y)> gather_last{"gather_last"};
/// x[r, ids[r, m]] += y[r, m], in the order of m.
inline constinit Kernel<void(const Tensor& y, const Tensor& ids, const Tensor& x)> add_last{"add_last"};

}  // namespace strata::kernels
