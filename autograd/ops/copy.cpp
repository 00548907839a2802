#include "autograd/ops/copy.h"

#include "autograd/autograd.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/create.h"

namespace strata {

namespace {

/// Zeros of `whole`'s shape with y's elements at `part`, a layout inside a row-major `whole`: the reverse of a view
/// that takes only some elements. Its own derivative is that view again.
Tensor place(const Tensor& y, const Dims& whole, const std::function<Tensor(const Tensor&)>& view) {
  Tensor x = zeros(whole, {y.dtype(), y.device()});
  {
    NoGrad off;
    copy_(view(x), y);
  }
  return record("place", x, wrt(y, [view](const Tensor& dx) { return view(dx); }));
}

}  // namespace

Tensor reshape(const Tensor& x, const Dims& shape) {
  Dims target = infer_shape(shape, x.numel(), "reshape");
  std::optional<Layout> view = x.layout().reshape(target);
  Tensor y = view ? alias(x, *view) : alias(clone_data(x), Layout::contiguous(target));
  return record("reshape", y, wrt(x, [shape = x.shape()](const Tensor& dy) { return reshape(dy, shape); }));
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  int i = normalize_axis(a, x.rank(), "transpose"), j = normalize_axis(b, x.rank(), "transpose");
  Tensor y = alias(x, x.layout().transpose(i, j));
  return record("transpose", y, wrt(x, [i, j](const Tensor& dy) { return transpose(dy, i, j); }));
}

Tensor permute(const Tensor& x, const Dims& axes) {
  Tensor y = alias(x, x.layout().permute(axes));
  Dims inverse = axes;
  for (int i = 0; i < axes.size(); ++i) inverse[normalize_axis(axes[i], x.rank(), "permute")] = i;
  return record("permute", y, wrt(x, [inverse](const Tensor& dy) { return permute(dy, inverse); }));
}

Tensor narrow(const Tensor& x, int64_t axis, int64_t start, int64_t length, int64_t step) {
  int at = normalize_axis(axis, x.rank(), "narrow");
  Tensor y = alias(x, x.layout().narrow(at, start, length, step));
  auto formula = [at, start, length, step, shape = x.shape()](const Tensor& dy) {
    return place(dy, shape, [=](const Tensor& whole) { return narrow(whole, at, start, length, step); });
  };
  return record("narrow", y, wrt(x, formula));
}

Tensor select(const Tensor& x, int64_t axis, int64_t index) {
  int at = normalize_axis(axis, x.rank(), "select");
  Tensor y = alias(x, x.layout().select(at, index));
  auto formula = [at, index, shape = x.shape()](const Tensor& dy) {
    return place(dy, shape, [=](const Tensor& whole) { return select(whole, at, index); });
  };
  return record("select", y, wrt(x, formula));
}

Tensor unsqueeze(const Tensor& x, int64_t axis) {
  int at = normalize_axis(axis, x.rank() + 1, "unsqueeze");
  Tensor y = alias(x, x.layout().unsqueeze(at));
  return record("unsqueeze", y, wrt(x, [at](const Tensor& dy) { return squeeze(dy, at); }));
}

Tensor squeeze(const Tensor& x, int64_t axis) {
  int at = normalize_axis(axis, x.rank(), "squeeze");
  Tensor y = alias(x, x.layout().squeeze(at));
  return record("squeeze", y, wrt(x, [at](const Tensor& dy) { return unsqueeze(dy, at); }));
}

Tensor expand(const Tensor& x, const Dims& shape) {
  Tensor y = alias(x, x.layout().broadcast_to(shape));
  return record("expand", y, wrt(x, [from = x.shape()](const Tensor& dy) { return sum_to(dy, from); }));
}

Tensor contiguous(const Tensor& x) {
  return x.is_contiguous() ? x : clone(x);
}

Tensor clone(const Tensor& x) {
  return record("clone", clone_data(x), wrt(x, [](const Tensor& dy) { return dy; }));
}

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = clone_data(x, dtype);
  if (!is_floating(dtype)) return y;  // rounding to integers has no derivative
  return record("to", y, wrt(x, [from = x.dtype()](const Tensor& dy) { return to(dy, from); }));
}

Tensor to(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  Tensor y = empty(x.shape(), {x.dtype(), device});
  copy_(y, x);
  return record("to", y, wrt(x, [from = x.device()](const Tensor& dy) { return to(dy, from); }));
}

Tensor cat(const std::vector<Tensor>& parts, int64_t axis) {
  check(!parts.empty(), "cat: expected at least one tensor, got none");
  const Tensor& first = parts.front();
  int at = normalize_axis(axis, first.rank(), "cat");
  Dims shape = first.shape();
  shape[at] = 0;
  for (const Tensor& part : parts) {
    Dims expected = first.shape();
    if (part.rank() == first.rank()) expected[at] = part.shape()[at];
    check(part.shape() == expected, "cat: shapes must agree but for axis {}, got {} and {}", at, first.shape(),
          part.shape());
    check(part.dtype() == first.dtype(), "cat: parts must have one dtype, got {} and {}", dtype_name(first.dtype()),
          dtype_name(part.dtype()));
    check(part.device() == first.device(), "cat: parts must live on one device, got {} and {}", first.device().name(),
          part.device().name());
    shape[at] += part.shape()[at];
  }
  Tensor y = empty(shape, {first.dtype(), first.device()});
  std::vector<int64_t> sizes;
  int64_t start = 0;
  for (const Tensor& part : parts) {
    int64_t size = part.shape()[at];
    copy_(alias(y, y.layout().narrow(at, start, size)), part);
    sizes.push_back(size);
    start += size;
  }
  auto formula = [at, sizes](const Tensor& dy, const std::vector<bool>& needs) {
    std::vector<Tensor> pieces;
    int64_t from = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      pieces.push_back(needs[i] ? narrow(dy, at, from, sizes[i]) : Tensor());
      from += sizes[i];
    }
    return pieces;
  };
  return record("cat", y, joint(parts, formula));
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis) {
  check(!parts.empty(), "stack: expected at least one tensor, got none");
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) {
    check(part.shape() == parts.front().shape(), "stack: shapes must agree, got {} and {}", parts.front().shape(),
          part.shape());
    rows.push_back(unsqueeze(part, normalize_axis(axis, part.rank() + 1, "stack")));
  }
  return cat(rows, normalize_axis(axis, parts.front().rank() + 1, "stack"));
}

}  // namespace strata
