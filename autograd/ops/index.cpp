#include "autograd/ops/index.h"

#include "autograd/ops/copy.h"
#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/index.h"

namespace strata {

namespace {

// Contiguous ids on the cpu, all within [0, limit).
Tensor checked_ids(const char* op, const Tensor& ids, int64_t limit) {
  check(ids.dtype() == DType::i32 || ids.dtype() == DType::i64, "{}: ids must be i32 or i64, got {}", op,
        dtype_name(ids.dtype()));
  Tensor flat = ids.is_contiguous() ? ids : clone_data(ids);
  if (!ids.device().is_cpu()) return flat;  // the device kernel checks
  with_index(ids.dtype(), op, [&]<class I>() {
    const I* p = flat.numel() ? flat.data<I>() : nullptr;
    for (int64_t i = 0; i < flat.numel(); ++i)
      check(p[i] >= 0 && p[i] < limit, "{}: ids must be in [0, {}), got {} at position {}", op, limit,
            static_cast<int64_t>(p[i]), i);
  });
  return flat;
}

Tensor add_rows(const Tensor& dy, const Tensor& ids, const Dims& shape);

// y [M, C] = x [V, C] by ids [M].
Tensor gather_rows(const char* name, const Tensor& x, const Tensor& ids) {
  Tensor rows = contiguous(x);
  Tensor y = empty({ids.numel(), x.size(1)}, {x.dtype(), x.device()});
  kernels::gather_rows(x.device(), rows, ids, y);
  return record(name, y, wrt(x, [ids, shape = x.shape()](const Tensor& dy) { return add_rows(dy, ids, shape); }));
}

// The transpose of gather_rows: x [V, C] = sum over m of dy [m, C] at row ids[m].
Tensor add_rows(const Tensor& dy, const Tensor& ids, const Dims& shape) {
  Tensor x = zeros(shape, {dy.dtype(), dy.device()});
  kernels::add_rows(dy.device(), contiguous(dy), ids, x);
  return record("add_rows", x, wrt(dy, [ids](const Tensor& dx) { return gather_rows("gather_rows", dx, ids); }));
}

Tensor take_rows(const char* name, const Tensor& x, const Tensor& ids, const Dims& shape) {
  int64_t columns =
      x.size(0) > 0 ? x.numel() / x.size(0) : numel(Dims(std::span(x.shape().begin() + 1, x.shape().end())));
  Tensor flat = checked_ids(name, ids, x.size(0));
  Tensor one_axis = alias(flat, Layout{{flat.numel()}, {1}, flat.layout().offset});
  return reshape(gather_rows(name, reshape(x, {x.size(0), columns}), one_axis), shape);
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  check(weight.rank() == 2, "embedding: weight must be [V, C], got {}", weight.shape());
  Dims shape = ids.shape();
  shape.push_back(weight.size(1));
  return take_rows("embedding", weight, ids, shape);
}

Tensor index_select(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1 && ids.rank() == 1, "index_select: x needs an axis and ids must be [M], got {} and {}", x.shape(),
        ids.shape());
  Dims shape = x.shape();
  shape[0] = ids.numel();
  return take_rows("index_select", x, ids, shape);
}

namespace {

Tensor add_last(const Tensor& dy, const Tensor& ids, int64_t n);

// y [R, M] = x [R, N] by ids [R, M].
Tensor gather_last(const Tensor& x, const Tensor& ids) {
  Tensor y = empty(ids.shape(), {x.dtype(), x.device()});
  kernels::gather_last(x.device(), contiguous(x), ids, y);
  return record("gather", y, wrt(x, [ids, n = x.size(1)](const Tensor& dy) { return add_last(dy, ids, n); }));
}

Tensor add_last(const Tensor& dy, const Tensor& ids, int64_t n) {
  Tensor x = zeros({dy.size(0), n}, {dy.dtype(), dy.device()});
  kernels::add_last(dy.device(), contiguous(dy), ids, x);
  return record("add_last", x, wrt(dy, [ids](const Tensor& dx) { return gather_last(dx, ids); }));
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& ids) {
  bool fits = x.rank() >= 1 && ids.rank() == x.rank();
  for (int i = 0; fits && i + 1 < x.rank(); ++i) fits = x.size(i) == ids.size(i);
  check(fits, "gather: x [..., N] and ids [..., M] must agree in all axes but the last, got {} and {}", x.shape(),
        ids.shape());
  Tensor flat = checked_ids("gather", ids, x.size(-1));
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.size(i);
  Tensor two_axes = alias(flat, Layout{{rows, ids.size(-1)}, {ids.size(-1), 1}, flat.layout().offset});
  return reshape(gather_last(reshape(x, {rows, x.size(-1)}), two_axes), ids.shape());
}

}  // namespace strata
