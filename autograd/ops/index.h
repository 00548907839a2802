// Reading and writing by index. Indices are i32 or i64; out of range is an error that names index and range.
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// weight [V, C], ids [...] -> [..., C]. The gradient adds rows in the order of ids (deterministic).
Tensor embedding(const Tensor& weight, const Tensor& ids);
/// Rows (slices of axis 0) of x by ids [M] -> [M, ...]. Same as embedding but for any rank of x.
Tensor index_select(const Tensor& x, const Tensor& ids);
/// y[i, j] = x[i, ids[i, j]] for the last axis; x [..., N], ids [..., M].
Tensor gather(const Tensor& x, const Tensor& ids);

}  // namespace strata
