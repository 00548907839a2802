#include "autograd/ops/dropout.h"

#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/dropout.h"

namespace strata {

namespace {

/// Linear in x: the gradient goes through the same mask, drawn again.
Tensor apply(const Tensor& x, const kernels::DropoutMask& mask) {
  Tensor y = empty_like(x);
  if (x.numel() > 0) kernels::dropout(x.device(), x.is_contiguous() ? x : clone_data(x), mask, y);
  return record("dropout", y, wrt(x, [mask](const Tensor& dy) { return apply(dy, mask); }));
}

}  // namespace

Tensor dropout(const Tensor& x, double p, Generator& generator) {
  check(p >= 0 && p < 1, "dropout: p must be in [0, 1), got {}", p);
  check(is_floating(x.dtype()), "dropout: expected a floating dtype, got {}", dtype_name(x.dtype()));
  if (p == 0) return x;
  return apply(x, {p, generator.seed, generator.take(x.numel())});
}

}  // namespace strata
