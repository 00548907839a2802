#include "autograd/ops/matmul.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/matmul_parts.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"

namespace strata {

DType product_dtype(const char* op, const Tensor& a, const Tensor& b) {
  check(is_floating(a.dtype()) && is_floating(b.dtype()), "{}: expected floating operands, got {} and {}", op,
        dtype_name(a.dtype()), dtype_name(b.dtype()));
  check(a.device() == b.device(), "{}: operands must live on one device, got {} and {}", op, a.device().name(),
        b.device().name());
  if (a.dtype() == b.dtype()) return a.dtype();
  bool mixes = a.dtype() != DType::f64 && b.dtype() != DType::f64;
  check(mixes, "{}: operands must have one dtype, got {} and {}", op, dtype_name(a.dtype()), dtype_name(b.dtype()));
  return DType::f32;
}

void check_linear(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias) {
  check(x.rank() >= 1 && w.rank() == 2 && x.size(-1) == w.size(1), "{}: inner dimensions differ, got x {} and w {}", op,
        x.shape(), w.shape());
  check(!bias || bias.shape() == Dims{w.size(0)}, "{}: bias must be [{}], got {}", op, w.size(0),
        bias ? bias.shape() : Dims());
}

Tensor linear_forward(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias) {
  Dims shape = x.shape();
  shape[shape.size() - 1] = w.size(0);
  Tensor y = empty(shape, {product_dtype(op, x, w), x.device()});
  if (bias) copy_(y, bias);
  multiply(as_matrix(x), transposed(w), as_matrix(y), 1, bias.defined());
  return y;
}

namespace {

Dims batch_of(const Tensor& t) {
  Dims batch = t.shape();
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  return batch;
}

bool broadcasts(const Dims& a, const Dims& b) {
  for (int i = 1; i <= std::min(a.size(), b.size()); ++i) {
    int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

Tensor broadcast_batch(const Tensor& t, Dims batch) {
  batch.push_back(t.size(-2));
  batch.push_back(t.size(-1));
  return alias(t, t.layout().broadcast_to(batch));
}

/// [..., C] -> [R, C], recorded.
Tensor matrix(const Tensor& t) {
  return reshape(t, {row_count(t.shape()), t.size(-1)});
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a.rank() >= 1 && b.rank() >= 1, "matmul: operands need at least one axis, got {} x {}", a.shape(), b.shape());
  check(a.size(-1) == b.size(b.rank() == 1 ? 0 : -2), "matmul: inner dimensions differ, got {} x {}", a.shape(),
        b.shape());
  if (a.rank() == 1) return squeeze(matmul(unsqueeze(a, 0), b), b.rank() == 1 ? 0 : -2);
  if (b.rank() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);

  check(broadcasts(batch_of(a), batch_of(b)), "matmul: leading axes do not broadcast, got {} x {}", a.shape(),
        b.shape());
  Dims batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  Dims shape = batch;
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  Tensor y = empty(shape, {product_dtype("matmul", a, b), a.device()});
  multiply(broadcast_batch(a, batch), broadcast_batch(b, batch), y);

  auto da = [b = saved(b), dtype = a.dtype()](const Tensor& dy) { return to(matmul(dy, transpose(b())), dtype); };
  auto db = [a = saved(a), dtype = b.dtype(), shape = b.shape()](const Tensor& dy) {
    bool one_for_all = numel(shape) == shape[shape.size() - 2] * shape.back() && a().numel() > 0 && a().rank() > 2 &&
                       row_count(a().shape()) == row_count(dy.shape());
    if (!one_for_all) return to(matmul(transpose(a()), dy), dtype);
    return reshape(to(matmul(transpose(matrix(a())), matrix(dy)), dtype), shape);  // summed by the product itself
  };
  return record("matmul", y, wrt(a, da), wrt(b, db));
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  check_linear("linear", x, w, bias);
  Tensor y = linear_forward("linear", x, w, bias);
  auto dx = [w = saved(w), shape = x.shape(), dtype = x.dtype()](const Tensor& dy) {
    return reshape(to(matmul(matrix(dy), w()), dtype), shape);
  };
  auto dw = [x = saved(x), dtype = w.dtype()](const Tensor& dy) {
    return to(matmul(transpose(matrix(dy)), matrix(x())), dtype);
  };
  auto db = [dtype = bias ? bias.dtype() : DType::f32](const Tensor& dy) { return to(sum(matrix(dy), {0}), dtype); };
  return record("linear", y, wrt(x, dx), wrt(w, dw), wrt(bias, db));
}

}  // namespace strata
