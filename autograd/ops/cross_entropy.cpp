#include "autograd/ops/cross_entropy.h"

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/cross_entropy_linear.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/rows.h"
#include "autograd/ops/softmax.h"
#include "autograd/record.h"
#include "tensor/kernels/cross_entropy.h"

namespace strata {

CheckedTargets checked_targets(const char* op, const Tensor& targets, int64_t N, int64_t V, int64_t ignore_index) {
  check(targets.shape() == Dims{N}, "{}: targets must be [{}], one per row, got {}", op, N, targets.shape());
  check(targets.dtype() == DType::i64 || targets.dtype() == DType::i32, "{}: targets must be i32 or i64, got {}", op,
        dtype_name(targets.dtype()));
  bool plain = targets.dtype() == DType::i64 && targets.is_contiguous();
  CheckedTargets result{plain ? targets : clone_data(targets, DType::i64), to_vector<int64_t>(targets)};
  for (int64_t row = 0; row < N; ++row) {
    int64_t target = result.host[static_cast<size_t>(row)];
    if (target == ignore_index) continue;
    check(target >= 0 && target < V, "{}: target must be in [0, {}) or {} (ignored), got {} at row {}", op, V,
          ignore_index, target, row);
    ++result.counted;
  }
  return result;
}

namespace {

void check_logits(const char* op, const Tensor& logits) {
  check(logits.rank() == 2 && is_floating(logits.dtype()), "{}: logits must be floating [N, V], got {}{}", op,
        dtype_name(logits.dtype()), logits.shape());
}

struct RowLosses {
  Tensor nll;         // [N]
  Tensor statistics;  // [N, 2]
};

RowLosses row_losses(const Tensor& logits, const Tensor& ids, int64_t ignore_index) {
  TensorOptions options{sum_dtype(logits.dtype()), logits.device()};
  RowLosses r{empty({logits.size(0)}, options), empty({logits.size(0), 2}, options)};
  kernels::cross_entropy(logits.device(), as_contiguous_matrix(logits), ids, ignore_index, r.nll, r.statistics);
  return r;
}

/// (softmax - onehot) * dy * scale at counted rows, out of operations: for second derivatives.
Tensor backward_recorded(const Tensor& logits, const CheckedTargets& targets, int64_t ignore_index, const Tensor& dy,
                         double scale) {
  int64_t N = logits.size(0), V = logits.size(1);
  Tensor counts = zeros({N, 1}, {DType::f64, Device::cpu()}), one_hot = zeros({N, V}, {DType::f64, Device::cpu()});
  for (int64_t row = 0; row < N; ++row) {
    int64_t target = targets.host[static_cast<size_t>(row)];
    if (target == ignore_index) continue;
    counts.mutable_data<double>()[row] = scale;
    one_hot.mutable_data<double>()[row * V + target] = 1;
  }
  auto constant = [&](const Tensor& t) { return to(to(t, dy.dtype()), dy.device()); };
  Tensor difference = softmax(to(logits, dy.dtype())) - constant(one_hot);
  // where, because 0 times the infinity of an ignored row would be NaN.
  Tensor counted = greater(constant(counts), scalar(0, {dy.dtype(), dy.device()}));
  Tensor kept = where(counted, difference, scalar(0, {dy.dtype(), dy.device()}));
  return to(kept * constant(counts) * dy, logits.dtype());
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions options) {
  check_logits("cross_entropy", logits);
  int64_t N = logits.size(0), V = logits.size(1), ignore = options.ignore_index;
  CheckedTargets labels = checked_targets("cross_entropy", targets, N, V, ignore);
  RowLosses losses = row_losses(logits, labels.ids, ignore);
  double scale = options.mean ? 1.0 / static_cast<double>(std::max<int64_t>(labels.counted, 1)) : 1.0;
  Tensor loss = sum(losses.nll) * scale;

  auto formula = [x = saved(logits), t = saved(labels.ids), s = saved(losses.statistics), labels, ignore,
                  scale](const Tensor& dy) {
    Tensor in = x();
    if (grad_enabled()) return backward_recorded(in, labels, ignore, dy, scale);
    Tensor dx = empty_like(in);
    kernels::cross_entropy_backward(in.device(), as_contiguous_matrix(in), t(), ignore, s(), dy, scale, dx);
    return dx;
  };
  return record("cross_entropy", loss, wrt(logits, formula));
}

Tensor token_nll(const Tensor& logits, const Tensor& targets, int64_t ignore_index) {
  check_logits("token_nll", logits);
  CheckedTargets labels = checked_targets("token_nll", targets, logits.size(0), logits.size(1), ignore_index);
  return row_losses(logits, labels.ids, ignore_index).nll;
}

}  // namespace strata
