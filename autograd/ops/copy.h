// Views (the same bytes under another layout) and copies. Views are recorded: the gradient flows back through them.
#pragma once

#include "tensor/tensor.h"

namespace strata {

/// A view where strides allow it, else a copy. One size may be -1.
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor transpose(const Tensor& x, int64_t a = -2, int64_t b = -1);
Tensor permute(const Tensor& x, const Dims& axes);
/// Elements [start, start + length) of `axis`, every `step`-th.
Tensor narrow(const Tensor& x, int64_t axis, int64_t start, int64_t length, int64_t step = 1);
/// Element `index` of `axis`, which disappears.
Tensor select(const Tensor& x, int64_t axis, int64_t index);
Tensor unsqueeze(const Tensor& x, int64_t axis);
Tensor squeeze(const Tensor& x, int64_t axis);
/// Broadcast view.
Tensor expand(const Tensor& x, const Dims& shape);
/// x itself if row-major already, else a copy.
Tensor contiguous(const Tensor& x);
/// A row-major copy.
Tensor clone(const Tensor& x);
/// Conversion of dtype (x itself if it has it).
Tensor to(const Tensor& x, DType dtype);
/// Copy to another device (x itself if it lives there).
Tensor to(const Tensor& x, Device device);
/// Joined along an existing / a new axis.
Tensor cat(const std::vector<Tensor>& parts, int64_t axis);
Tensor stack(const std::vector<Tensor>& parts, int64_t axis);

}  // namespace strata
