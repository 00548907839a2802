#include "autograd/ops/norm.h"

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/rows.h"
#include "autograd/record.h"
#include "tensor/kernels/norm.h"

namespace strata {

namespace {

void check_norm(const char* op, const Tensor& x, const Tensor& w, const char* name) {
  check(x.rank() >= 1 && is_floating(x.dtype()), "{}: expected a floating tensor with at least one axis, got {}{}", op,
        dtype_name(x.dtype()), x.shape());
  if (!w) return;
  check(w.shape() == Dims{x.size(-1)}, "{}: {} must be [{}], got {}", op, name, x.size(-1), w.shape());
  check(is_floating(w.dtype()), "{}: {} must be floating, got {}", op, name, dtype_name(w.dtype()));
}

/// w in the statistics' type, row-major; the kernels know no other.
Tensor as_scale(const Tensor& w, DType dtype) {
  return !w || (w.dtype() == dtype && w.is_contiguous()) ? w : clone_data(w, dtype);
}

Tensor empty_statistic(const Tensor& x) {
  return empty({row_count(x.shape())}, {sum_dtype(x.dtype()), x.device()});
}
Tensor empty_sum(const Tensor& x) {
  return empty({x.size(-1)}, {sum_dtype(x.dtype()), x.device()});
}

/// The gradient of a parameter, from the statistics' type to its own.
Tensor as_gradient(const Tensor& sum, const Tensor& w) {
  return sum ? to(sum, w.dtype()) : sum;
}

/// dx = rstd (g - mean(g) - xhat mean(g xhat)) and the gradients of w and b, out of operations: for second derivatives.
std::vector<Tensor> backward_recorded(const Tensor& dy, const Tensor& x, const Tensor& w, double offset, double eps,
                                      bool centred) {
  DType dtype = sum_dtype(x.dtype());
  Tensor rows = to(x, dtype), g = to(dy, dtype);
  Tensor d = centred ? rows - mean(rows, {-1}, true) : rows;
  Tensor rstd = rsqrt(mean(d * d, {-1}, true) + eps);
  Tensor xhat = d * rstd;
  Tensor gw = w ? g * (to(w, dtype) + offset) : g;
  Tensor inner = gw - xhat * mean(gw * xhat, {-1}, true);
  if (centred) inner = inner - mean(gw, {-1}, true);
  std::vector<Tensor> result{to(rstd * inner, x.dtype()), {}, {}};
  if (!w) return result;
  result[1] = to(sum_to(g * xhat, w.shape()), w.dtype());
  return result;
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& w, double eps, double offset) {
  check_norm("rms_norm", x, w, "w");
  Tensor y = empty_like(x), rstd = empty_statistic(x);
  kernels::rms_norm(x.device(), as_contiguous_matrix(x), as_scale(w, rstd.dtype()), offset, eps, as_matrix(y), rstd);
  auto formula = [xs = saved(x), ws = saved(w), rs = saved(rstd), eps, offset](const Tensor& dy,
                                                                               const std::vector<bool>& needs) {
    Tensor in = xs(), weight = ws();
    if (grad_enabled()) {
      std::vector<Tensor> all = backward_recorded(dy, in, weight, offset, eps, false);
      return std::vector<Tensor>{all[0], all[1]};
    }
    Tensor dx = needs[0] ? empty_like(in) : Tensor(), dw = needs[1] ? empty_sum(in) : Tensor();
    Tensor r = rs();
    kernels::rms_norm_backward(in.device(), as_contiguous_matrix(dy), as_contiguous_matrix(in),
                               as_scale(weight, r.dtype()), offset, r, dx ? as_matrix(dx) : dx, dw);
    return std::vector<Tensor>{dx, as_gradient(dw, weight)};
  };
  return record("rms_norm", y, joint({x, w}, formula));
}

Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps) {
  check_norm("layer_norm", x, w, "w");
  check_norm("layer_norm", x, b, "b");
  Tensor y = empty_like(x), mean = empty_statistic(x), rstd = empty_statistic(x);
  DType dtype = rstd.dtype();
  kernels::layer_norm(x.device(), as_contiguous_matrix(x), as_scale(w, dtype), as_scale(b, dtype), eps, as_matrix(y),
                      mean, rstd);
  auto formula = [xs = saved(x), ws = saved(w), ms = saved(mean), rs = saved(rstd), eps,
                  b_dtype = b ? b.dtype() : dtype](const Tensor& dy, const std::vector<bool>& needs) {
    Tensor in = xs(), weight = ws();
    if (grad_enabled()) {
      std::vector<Tensor> all = backward_recorded(dy, in, weight, 0, eps, true);
      all[2] = to(sum_to(to(dy, sum_dtype(in.dtype())), {in.size(-1)}), b_dtype);
      return all;
    }
    Tensor dx = needs[0] ? empty_like(in) : Tensor(), dw = needs[1] ? empty_sum(in) : Tensor(),
           db = needs[2] ? empty_sum(in) : Tensor();
    Tensor r = rs();
    kernels::layer_norm_backward(in.device(), as_contiguous_matrix(dy), as_contiguous_matrix(in),
                                 as_scale(weight, r.dtype()), ms(), r, dx ? as_matrix(dx) : dx, dw, db);
    return std::vector<Tensor>{dx, as_gradient(dw, weight), db ? to(db, b_dtype) : db};
  };
  return record("layer_norm", y, joint({x, w, b}, formula));
}

}  // namespace strata
