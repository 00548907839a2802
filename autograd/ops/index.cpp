#include "autograd/ops/index.h"

#include "autograd/ops/copy.h"
#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/index.h"

namespace strata {

namespace {

/// Contiguous ids on x's device, all in [0, limit).
Tensor checked_ids(const char* op, const Tensor& x, const Tensor& ids, int64_t limit) {
  check(ids.dtype() == DType::i64 || ids.dtype() == DType::i32, "{}: ids must be i32 or i64, got {}", op,
        dtype_name(ids.dtype()));
  check(ids.device() == x.device(), "{}: ids must live on {}, got {}", op, x.device().name(), ids.device().name());
  Tensor dense = ids.is_contiguous() ? ids : clone_data(ids);
  if (dense.numel() == 0) return dense;
  int64_t position = -1;
  kernels::first_outside(dense.device(), dense, limit, position);
  if (position < 0) return dense;
  int64_t id = to_vector<int64_t>(dense)[static_cast<size_t>(position)];
  fail("{}: ids must be in [0, {}), got {} at position {}", op, limit, id, position);
}

/// x as a row-major matrix of `rows` rows, without a graph.
Tensor matrix(const Tensor& x, int64_t rows) {
  Tensor dense = x.is_contiguous() ? x : clone_data(x);
  int64_t columns = rows ? x.numel() / rows : 0;
  return alias(dense, Layout{{rows, columns}, {columns, 1}, dense.layout().offset});
}

Dims with_first(Dims shape, int64_t size) {
  shape[0] = size;
  return shape;
}

Tensor select_rows(const Tensor& x, const Tensor& ids);

/// The reverse of select_rows: dx of `shape`.
Tensor add_rows(const Tensor& dy, const Tensor& ids, const Dims& shape) {
  Tensor dx = empty(shape, {dy.dtype(), dy.device()});
  kernels::index_add(dy.device(), matrix(dy, dy.shape()[0]), ids, matrix(dx, shape[0]));
  return record("index_add", dx, wrt(dy, [ids](const Tensor& g) { return select_rows(g, ids); }));
}

/// ids [M] have been checked.
Tensor select_rows(const Tensor& x, const Tensor& ids) {
  Tensor y = empty(with_first(x.shape(), ids.numel()), {x.dtype(), x.device()});
  kernels::index_select(x.device(), matrix(x, x.shape()[0]), ids, matrix(y, ids.numel()));
  auto formula = [ids = saved(ids), shape = x.shape()](const Tensor& dy) { return add_rows(dy, ids(), shape); };
  return record("index_select", y, wrt(x, formula));
}

Tensor gather_checked(const Tensor& x, const Tensor& ids);

Tensor scatter_add(const Tensor& dy, const Tensor& ids, const Dims& shape) {
  Tensor dx = empty(shape, {dy.dtype(), dy.device()});
  int64_t rows = shape.back() ? dx.numel() / shape.back() : 0;
  kernels::scatter_add(dy.device(), matrix(dy, rows), matrix(ids, rows), matrix(dx, rows));
  return record("scatter_add", dx, wrt(dy, [ids](const Tensor& g) { return gather_checked(g, ids); }));
}

Tensor gather_checked(const Tensor& x, const Tensor& ids) {
  Tensor y = empty(ids.shape(), {x.dtype(), x.device()});
  int64_t rows = ids.shape().back() ? ids.numel() / ids.shape().back() : 0;
  kernels::gather(x.device(), matrix(x, rows), matrix(ids, rows), matrix(y, rows));
  auto formula = [ids = saved(ids), shape = x.shape()](const Tensor& dy) { return scatter_add(dy, ids(), shape); };
  return record("gather", y, wrt(x, formula));
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  check(weight.rank() == 2, "embedding: weight must be [V, C], got {}", weight.shape());
  Tensor dense = checked_ids("embedding", weight, ids, weight.shape()[0]);
  Dims shape = ids.shape();
  shape.push_back(weight.shape()[1]);
  return reshape(select_rows(weight, alias(dense, Layout{{ids.numel()}, {1}, dense.layout().offset})), shape);
}

Tensor index_select(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "index_select: x must have at least one axis, got {}", x.shape());
  check(ids.rank() == 1, "index_select: ids must be [M], got {}", ids.shape());
  return select_rows(x, checked_ids("index_select", x, ids, x.shape()[0]));
}

Tensor gather(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1 && ids.rank() == x.rank(), "gather: x and ids must have one rank, got {} and {}", x.shape(),
        ids.shape());
  Dims expected = x.shape();
  expected[x.rank() - 1] = ids.shape().back();
  check(ids.shape() == expected, "gather: x and ids must agree but for the last axis, got {} and {}", x.shape(),
        ids.shape());
  return gather_checked(x, checked_ids("gather", x, ids, x.shape().back()));
}

}  // namespace strata
