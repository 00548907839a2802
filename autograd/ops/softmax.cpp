#include "autograd/ops/softmax.h"

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/softmax.h"

namespace strata {

namespace {

Tensor row_major(const Tensor& t) {
  return t.is_contiguous() ? t : clone_data(t);
}

Tensor run(const kernels::SoftmaxKernel& kernel, const Tensor& x) {
  check(is_floating(x.dtype()), "{}: expected a floating dtype, got {}", kernel.name(), dtype_name(x.dtype()));
  Tensor y = empty_like(x);
  kernel(x.device(), row_major(x), y);
  return y;
}

Tensor run(const kernels::SoftmaxBackwardKernel& kernel, const Tensor& dy, const Tensor& y) {
  Tensor dx = empty_like(y);
  kernel(y.device(), row_major(dy), y, dx);
  return dx;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis) {
  int last = x.rank() - 1, at = normalize_axis(axis, x.rank(), "softmax");
  if (at != last) return transpose(softmax(transpose(x, at, last), last), at, last);
  Tensor y = run(kernels::softmax, x);
  auto formula = [y = saved_output(y)](const Tensor& dy) {
    if (!grad_enabled()) return run(kernels::softmax_backward, dy, y());
    Tensor p = y();
    return p * (dy - sum(dy * p, {-1}, true));
  };
  return record("softmax", y, wrt(x, formula));
}

Tensor log_softmax(const Tensor& x, int64_t axis) {
  int last = x.rank() - 1, at = normalize_axis(axis, x.rank(), "log_softmax");
  if (at != last) return transpose(log_softmax(transpose(x, at, last), last), at, last);
  Tensor y = run(kernels::log_softmax, x);
  auto formula = [y = saved_output(y)](const Tensor& dy) {
    if (!grad_enabled()) return run(kernels::log_softmax_backward, dy, y());
    return dy - exp(y()) * sum(dy, {-1}, true);
  };
  return record("log_softmax", y, wrt(x, formula));
}

}  // namespace strata
