#include "autograd/ops/quant.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/cross_entropy_linear.h"
#include "autograd/ops/matmul_parts.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/create.h"

namespace strata {

namespace {

constexpr int64_t kFewRows = 16;             // of x: up to here the packed form is multiplied directly
constexpr int64_t kPanelElements = 1 << 20;  // of w as f32: 4 MB, within the last cache

void check_weight(const char* op, const QuantizedWeight& w) {
  check(w.bytes.defined() && w.rows >= 0 && w.columns >= 0 && w.columns % quant_block_values(w.type) == 0,
        "{}: expected a weight with whole blocks of {} values, got {} [{}, {}]", op, quant_block_values(w.type),
        quant_type_name(w.type), w.rows, w.columns);
  Dims shape{w.rows, w.columns / quant_block_values(w.type) * quant_block_bytes(w.type)};
  check(w.bytes.dtype() == DType::u8 && w.bytes.shape() == shape && w.bytes.is_contiguous(),
        "{}: {} [{}, {}] needs u8 {}, got {} {}", op, quant_type_name(w.type), w.rows, w.columns, shape,
        dtype_name(w.bytes.dtype()), w.bytes.shape());
}

/// f64 for f64, else f32: what products with w are computed in.
DType product_dtype(const Tensor& x) {
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

Tensor as_dtype(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : clone_data(t, dtype);
}

/// Calls f(rows [n, columns] of w in `dtype`, first row) for panel after panel.
template <class F>
void for_each_panel(const QuantizedWeight& w, DType dtype, F&& f) {
  int64_t size = std::clamp<int64_t>(kPanelElements / std::max<int64_t>(w.columns, 1) / 16 * 16, 64, 1024);
  Tensor workspace = empty({std::min(size, w.rows), w.columns}, {DType::f32, w.bytes.device()});
  for (int64_t first = 0; first < w.rows; first += size) {
    int64_t n = std::min(size, w.rows - first);
    Tensor panel = alias(workspace, workspace.layout().narrow(0, 0, n));
    kernels::dequantize(panel.device(), w, first, panel);
    f(as_dtype(panel, dtype), first);
  }
}

Tensor columns_of(const Tensor& y, int64_t first, int64_t n) {
  return alias(y, y.layout().narrow(1, first, n));
}

/// y = x w^T (+ y): x [R, columns], y [R, rows], both row-major of product_dtype.
void multiply_transposed(const Tensor& x, const QuantizedWeight& w, const Tensor& y, bool accumulate) {
  if (y.numel() == 0) return;
  if (x.size(0) <= kFewRows && y.dtype() == DType::f32 && !accumulate)
    return kernels::quantized_matmul(x.device(), x, w, y);
  for_each_panel(w, y.dtype(), [&](const Tensor& panel, int64_t first) {
    multiply(x, transposed(panel), columns_of(y, first, panel.size(0)), 1, accumulate);
  });
}

/// dx = dy w: dy [R, rows], dx [R, columns].
void multiply_plain(const Tensor& dy, const QuantizedWeight& w, const Tensor& dx) {
  if (w.rows == 0) fill_(dx, 0);
  if (dx.numel() == 0) return;
  for_each_panel(w, dx.dtype(), [&](const Tensor& panel, int64_t first) {
    multiply(columns_of(dy, first, panel.size(0)), panel, dx, 1, first > 0);
  });
}

Tensor with_last(const Tensor& x, int64_t size) {
  Dims shape = x.shape();
  shape[shape.size() - 1] = size;
  return empty(shape, {product_dtype(x), x.device()});
}

Tensor product(const Tensor& x, const QuantizedWeight& w);

/// dy [..., rows] -> dy w [..., columns].
Tensor product_back(const Tensor& dy, const QuantizedWeight& w) {
  Tensor dx = with_last(dy, w.columns);
  multiply_plain(as_contiguous_matrix(as_dtype(dy, dx.dtype())), w, as_matrix(dx));
  return record("quantized_linear", as_dtype(dx, dy.dtype()), wrt(dy, [w](const Tensor& d) { return product(d, w); }));
}

/// x [..., columns] -> x w^T [..., rows].
Tensor product(const Tensor& x, const QuantizedWeight& w) {
  Tensor y = with_last(x, w.rows);
  multiply_transposed(as_contiguous_matrix(as_dtype(x, y.dtype())), w, as_matrix(y), false);
  return record("quantized_linear", as_dtype(y, x.dtype()),
                wrt(x, [w](const Tensor& dy) { return product_back(dy, w); }));
}

}  // namespace

Tensor dequantize(const QuantizedWeight& w) {
  check_weight("dequantize", w);
  Tensor y = empty({w.rows, w.columns}, {DType::f32, w.bytes.device()});
  kernels::dequantize(y.device(), w, 0, y);
  return y;
}

Tensor quantized_linear(const Tensor& x, const QuantizedWeight& w, const Tensor& b) {
  check_weight("quantized_linear", w);
  check(x.rank() >= 1 && x.size(-1) == w.columns, "quantized_linear: inner dimensions differ, got x {} and w [{}, {}]",
        x.shape(), w.rows, w.columns);
  check(is_floating(x.dtype()), "quantized_linear: x must be floating, got {}", dtype_name(x.dtype()));
  check(x.device() == w.bytes.device(), "quantized_linear: x and w must be on one device, got {} and {}",
        x.device().name(), w.bytes.device().name());
  check(!b || b.shape() == Dims{w.rows}, "quantized_linear: bias must be [{}], got {}", w.rows, b ? b.shape() : Dims());
  Tensor y = product(x, w);
  return b ? add(y, b) : y;
}

Tensor quantized_embedding(const QuantizedWeight& w, const Tensor& ids) {
  check_weight("quantized_embedding", w);
  Tensor flat = contiguous(ids);
  with_index(ids.dtype(), "quantized_embedding", [&]<class I>() {
    if (!ids.device().is_cpu()) return;
    const I* id = flat.data<I>();
    for (int64_t i = 0; i < flat.numel(); ++i)
      check(id[i] >= 0 && id[i] < w.rows, "quantized_embedding: id must be in [0, {}), got {} at position {}", w.rows,
            id[i], i);
  });
  Dims shape = ids.shape();
  shape.push_back(w.columns);
  Tensor y = empty(shape, {DType::f32, w.bytes.device()});
  kernels::dequantize_rows(y.device(), w, alias(flat, Layout::contiguous({flat.numel()})),
                           alias(y, Layout::contiguous({flat.numel(), w.columns})));
  return y;
}

Tensor quantized_linear_cross_entropy(const Tensor& x, const QuantizedWeight& w, const Tensor& targets,
                                      int64_t ignore_index) {
  constexpr const char* kOp = "quantized_linear_cross_entropy";
  check_weight(kOp, w);
  check(x.rank() == 2 && x.size(1) == w.columns, "{}: x must be [N, {}], got {}", kOp, w.columns, x.shape());
  CrossEntropyHead head{kOp, w.rows, nullptr, nullptr, nullptr};
  head.logits = [&](const Tensor& in, const Tensor& logits) {
    multiply_transposed(as_dtype(in, logits.dtype()), w, logits, false);
  };
  if (detail::wants_gradient(x))
    head.dx = [&](const Tensor& dlogits, const Tensor& dx) {
      Tensor sums = dx.dtype() == dlogits.dtype() ? dx : empty(dx.shape(), {dlogits.dtype(), dx.device()});
      multiply_plain(dlogits, w, sums);
      if (!sums.same_as(dx)) copy_(dx, sums);
    };
  ChunkedCrossEntropy result = chunked_cross_entropy(head, x, targets, ignore_index);
  return record(kOp, result.loss, wrt(x, [dx = saved(result.dx), dtype = x.dtype()](const Tensor& dy) {
                  return scaled_gradient(kOp, dx(), dy, dtype);
                }));
}

}  // namespace strata
