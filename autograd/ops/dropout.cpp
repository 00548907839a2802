#include "autograd/ops/dropout.h"

#include "autograd/ops/copy.h"
#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/dropout.h"

namespace strata {

namespace {

// Linear in x with a fixed mask, so its derivative is itself.
Tensor apply_mask(const Tensor& x, const kernels::DropoutMask& mask) {
  Tensor y = empty_like(x);
  kernels::dropout(x.device(), contiguous(x), mask, y);
  return record("dropout", y, wrt(x, [mask](const Tensor& dy) { return apply_mask(dy, mask); }));
}

}  // namespace

Tensor dropout(const Tensor& x, double p, Generator& generator) {
  check(p >= 0 && p < 1, "dropout: p must be in [0, 1), got {}", p);
  if (p == 0) return x;
  return apply_mask(x, {generator.seed, generator.take(x.numel()), p});
}

}  // namespace strata
