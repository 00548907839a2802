#include "autograd/ops/reduce.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/reduce.h"

namespace strata {

namespace {

/// x's shape with size 1 at every listed axis (all if none is listed).
Dims reduced_shape(const char* op, const Dims& shape, const Dims& axes) {
  if (axes.empty()) return Dims::filled(shape.size(), 1);
  Dims kept = shape;
  std::array<bool, kMaxRank> seen{};
  for (int64_t axis : axes) {
    int i = normalize_axis(axis, shape.size(), op);
    check(!seen[static_cast<size_t>(i)], "{}: axes must be distinct, got {}", op, axes);
    seen[static_cast<size_t>(i)] = true;
    kept[i] = 1;
  }
  return kept;
}

Dims without_axes(const Dims& shape, const Dims& axes) {
  Dims out;
  if (axes.empty()) return out;
  for (int i = 0; i < shape.size(); ++i)
    if (std::none_of(axes.begin(), axes.end(), [&](int64_t a) { return a == i || a + shape.size() == i; }))
      out.push_back(shape[i]);
  return out;
}

/// Sum to `kept` (1 at reduced axes), delivered as `result` (the same elements).
Tensor sum_kept(const Tensor& x, const Dims& kept, const Dims& result) {
  DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::i64;
  Tensor y = empty(kept, {dtype, x.device()});
  kernels::sum(x.device(), x, y);
  y = alias(y, Layout::contiguous(result));
  auto formula = [kept, shape = x.shape()](const Tensor& dy) { return expand(reshape(dy, kept), shape); };
  return record("sum", y, wrt(x, formula));
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& axes, bool keep_dims) {
  Dims kept = reduced_shape("sum", x.shape(), axes);
  return sum_kept(x, kept, keep_dims ? kept : without_axes(x.shape(), axes));
}

// An empty mean is 0 / 0 = NaN.
Tensor mean(const Tensor& x, const Dims& axes, bool keep_dims) {
  check(is_floating(x.dtype()), "mean: expected a floating dtype, got {}", dtype_name(x.dtype()));
  Dims kept = reduced_shape("mean", x.shape(), axes);
  int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == i || a + x.rank() == i; }))
      count *= x.shape()[i];
  return sum_kept(x, kept, keep_dims ? kept : without_axes(x.shape(), axes)) * (1.0 / static_cast<double>(count));
}

Tensor sum_to(const Tensor& x, const Dims& shape) {
  if (x.shape() == shape) return x;
  Layout::contiguous(shape).broadcast_to(x.shape());  // throws unless x's shape can come from `shape`
  Dims kept = Dims::filled(x.rank() - shape.size(), 1);
  for (int64_t size : shape) kept.push_back(size);
  return sum_kept(x, kept, shape);
}

namespace {

/// The shape of a reduction along one axis.
Dims along_axis(const char* op, const Tensor& x, int64_t axis) {
  int i = normalize_axis(axis, x.rank(), op);
  check(x.shape()[i] > 0, "{}: axis {} must not be empty, got {}", op, axis, x.shape());
  Dims kept = x.shape();
  kept[i] = 1;
  return kept;
}

}  // namespace

Tensor max(const Tensor& x, int64_t axis, bool keep_dims) {
  Dims kept = along_axis("max", x, axis);
  int at = normalize_axis(axis, x.rank(), "max");
  Tensor y = empty(kept, {x.dtype(), x.device()});
  bool wanted = detail::wants_gradient(x);
  Tensor index = wanted ? empty(kept, {DType::i64, x.device()}) : Tensor();
  kernels::max(x.device(), x, at, y, index);
  Dims result = kept;
  if (!keep_dims) result.erase(at);
  y = alias(y, Layout::contiguous(result));
  if (!wanted) return y;
  auto formula = [index = saved(index), at, kept, n = x.shape()[at]](const Tensor& dy) {
    Dims along = Dims::filled(kept.size(), 1);
    along[at] = n;
    Tensor position = reshape(arange(n, {DType::i64, dy.device()}), along);
    return where(equal(position, index()), reshape(dy, kept), zeros({}, {dy.dtype(), dy.device()}));
  };
  return record("max", y, wrt(x, formula));
}

Tensor argmax(const Tensor& x, int64_t axis) {
  Dims kept = along_axis("argmax", x, axis);
  int at = normalize_axis(axis, x.rank(), "argmax");
  Tensor index = empty(kept, {DType::i64, x.device()});
  kernels::max(x.device(), x, at, Tensor(), index);
  kept.erase(at);
  return alias(index, Layout::contiguous(kept));
}

bool all_finite(const Tensor& x) {
  check(is_floating(x.dtype()), "all_finite: expected a floating dtype, got {}", dtype_name(x.dtype()));
  bool finite = true;
  if (x.numel() > 0) kernels::all_finite(x.device(), x, finite);
  return finite;
}

}  // namespace strata
