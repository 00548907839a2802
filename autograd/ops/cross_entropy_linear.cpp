#include "autograd/ops/cross_entropy_linear.h"

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/matmul_parts.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/kernels/cross_entropy.h"

namespace strata {

namespace {

/// Rows [start, start + length) that all count.
struct Run {
  int64_t start, length;
};

constexpr int64_t kLogitsInChunk = 1 << 23;  // 32 MB of f32

int64_t chunk_rows(int64_t V) {
  return std::clamp<int64_t>(kLogitsInChunk / std::max<int64_t>(V, 1), 64, 512);
}

/// The counted rows as runs, cut into chunks of at most `rows` rows.
std::vector<std::vector<Run>> counted_chunks(const std::vector<int64_t>& targets, int64_t ignore_index, int64_t rows) {
  std::vector<std::vector<Run>> chunks;
  int64_t in_chunk = rows;
  for (int64_t row = 0; row < static_cast<int64_t>(targets.size()); ++row) {
    if (targets[static_cast<size_t>(row)] == ignore_index) continue;
    if (in_chunk == rows) {
      chunks.emplace_back();
      in_chunk = 0;
    }
    std::vector<Run>& runs = chunks.back();
    if (!runs.empty() && runs.back().start + runs.back().length == row)
      ++runs.back().length;
    else
      runs.push_back({row, 1});
    ++in_chunk;
  }
  return chunks;
}

Tensor rows_of(const Tensor& t, int64_t start, int64_t length) {
  return alias(t, t.layout().narrow(0, start, length));
}

int64_t total(const std::vector<Run>& runs) {
  int64_t count = 0;
  for (const Run& run : runs) count += run.length;
  return count;
}

/// The runs' rows one after the other: a view where one run is all.
Tensor gathered(const Tensor& t, const std::vector<Run>& runs) {
  if (runs.size() == 1) return rows_of(t, runs[0].start, runs[0].length);
  Dims shape = t.shape();
  shape[0] = total(runs);
  Tensor out = empty(shape, {t.dtype(), t.device()});
  int64_t at = 0;
  for (const Run& run : runs) {
    copy_(rows_of(out, at, run.length), rows_of(t, run.start, run.length));
    at += run.length;
  }
  return out;
}

void scatter(const Tensor& rows, const std::vector<Run>& runs, const Tensor& t) {
  int64_t at = 0;
  for (const Run& run : runs) {
    copy_(rows_of(t, run.start, run.length), rows_of(rows, at, run.length));
    at += run.length;
  }
}

/// One chunk: its rows' losses into nll, their gradients into dx and the head.
void run_chunk(const CrossEntropyHead& head, const Tensor& x, const Tensor& ids, int64_t ignore_index,
               const std::vector<Run>& runs, const Tensor& logits, const Tensor& nll, const Tensor& dx) {
  Tensor in = gathered(x, runs), labels = gathered(ids, runs);  // [n, C], [n]
  head.logits(in, logits);
  TensorOptions options{logits.dtype(), logits.device()};
  Tensor statistics = empty({logits.size(0), 2}, options);
  kernels::cross_entropy(logits.device(), logits, labels, ignore_index, nll, statistics);
  if (!head.dx && !head.add_dw) return;
  kernels::cross_entropy_backward(logits.device(), logits, labels, ignore_index, statistics, ones({}, options), 1.0,
                                  logits);
  if (head.add_dw) head.add_dw(logits, in);
  if (!head.dx) return;
  Tensor out = runs.size() == 1 ? gathered(dx, runs) : empty_like(in);
  head.dx(logits, out);
  if (runs.size() > 1) scatter(out, runs, dx);
}

}  // namespace

ChunkedCrossEntropy chunked_cross_entropy(const CrossEntropyHead& head, const Tensor& x, const Tensor& targets,
                                          int64_t ignore_index) {
  check(x.rank() == 2 && is_floating(x.dtype()), "{}: x must be floating [N, C], got {}{}", head.op,
        dtype_name(x.dtype()), x.shape());
  CheckedTargets labels = checked_targets(head.op, targets, x.size(0), head.classes, ignore_index);
  TensorOptions options{sum_dtype(x.dtype()), x.device()};
  Tensor rows = as_contiguous_matrix(x), nll = empty({labels.counted}, options);
  Tensor dx = head.dx ? zeros(x.shape(), {x.dtype(), x.device()}) : Tensor();
  int64_t most = std::min(chunk_rows(head.classes), labels.counted);
  Tensor logits = empty({most, head.classes}, options);  // one workspace for all chunks
  int64_t at = 0;
  for (const std::vector<Run>& runs : counted_chunks(labels.host, ignore_index, most)) {
    int64_t n = total(runs);
    run_chunk(head, rows, labels.ids, ignore_index, runs, rows_of(logits, 0, n), rows_of(nll, at, n), dx);
    at += n;
  }
  NoGrad off;
  return {sum(nll), dx};
}

Tensor scaled_gradient(const char* op, const Tensor& gradient, const Tensor& dy, DType dtype) {
  check(!grad_enabled(),
        "{}: no second derivative, its gradients are computed in the forward pass; use "
        "cross_entropy(linear(x, w), targets) under create_graph",
        op);
  return to(to(gradient, dy.dtype()) * dy, dtype);
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& targets, int64_t ignore_index) {
  check_linear("linear_cross_entropy", x, w, {});
  product_dtype("linear_cross_entropy", x, w);
  check((x.dtype() == DType::f64) == (w.dtype() == DType::f64), "linear_cross_entropy: x and w must have one dtype");
  bool wants_x = grad_enabled() && requires_grad(x), wants_w = grad_enabled() && requires_grad(w);
  Tensor dw = wants_w ? zeros(w.shape(), {sum_dtype(w.dtype()), w.device()}) : Tensor();
  Tensor matrix = alias(w);
  CrossEntropyHead head{"linear_cross_entropy", w.size(0), nullptr, nullptr, nullptr};
  head.logits = [&](const Tensor& in, const Tensor& logits) { multiply(in, transposed(matrix), logits); };
  if (wants_x) head.dx = [&](const Tensor& dlogits, const Tensor& dx) { multiply(dlogits, matrix, dx); };
  if (wants_w)
    head.add_dw = [&](const Tensor& dlogits, const Tensor& in) { multiply(transposed(dlogits), in, dw, 1, true); };
  ChunkedCrossEntropy result = chunked_cross_entropy(head, x, targets, ignore_index);

  auto formula = [dx = saved(result.dx), dw = saved(dw), x_dtype = x.dtype(), w_dtype = w.dtype()](
                     const Tensor& dy, const std::vector<bool>& needs) {
    auto scaled = [&](const Saved& gradient, DType dtype) {
      return scaled_gradient("linear_cross_entropy", gradient(), dy, dtype);
    };
    return std::vector<Tensor>{needs[0] ? scaled(dx, x_dtype) : Tensor(), needs[1] ? scaled(dw, w_dtype) : Tensor()};
  };
  return record("linear_cross_entropy", result.loss, joint({x, w}, formula));
}

}  // namespace strata
