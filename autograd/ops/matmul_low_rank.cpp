#include "autograd/node.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/matmul_parts.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"

namespace strata {

namespace {

void check_low_rank(const char* op, const Tensor& x, const Tensor& a, const Tensor& b, int64_t N) {
  check(x.rank() >= 1 && a.rank() == 2 && b.rank() == 2 && a.size(1) == x.size(-1) && b.size(1) == a.size(0) &&
            b.size(0) == N,
        "{}: expected A [r, {}] and B [{}, r], got {} and {}", op, x.rank() ? x.size(-1) : 0, N, a.shape(), b.shape());
  product_dtype(op, x, a);
  product_dtype(op, x, b);
}

bool wants(const Tensor& t) {
  return grad_enabled() && requires_grad(t);
}

/// y += scale (x A^T) B^T. Returns h = x A^T [R, r].
Tensor add_term(const Tensor& x, const Tensor& a, const Tensor& b, double scale, const Tensor& y) {
  Tensor h = empty({row_count(x.shape()), a.size(0)}, {sum_dtype(x.dtype()), x.device()});
  multiply(as_matrix(x), transposed(a), h);
  multiply(h, transposed(b), as_matrix(y), scale, true);
  return h;
}

/// Gradients of scale (x A^T) B^T, all as matrices: with t = scale dy B [R, r],
/// dx = t A, dA = t^T x, dB = scale dy^T h.
struct LowRankGradients {
  Tensor x, a, b;
};

class LowRankTerm {
 public:
  LowRankTerm(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& h, double scale)
      : x_(saved(wants(a) || wants(b) ? x : Tensor())),
        a_(saved(a)),
        b_(saved(b)),
        h_(saved(wants(b) ? h : Tensor())),
        x_dtype_(x.dtype()),
        scale_(scale) {}

  /// dy [R, N]. The gradient of x is added to dx where that is defined.
  LowRankGradients backward(const Tensor& dy, const Tensor& dx, bool need_x, bool need_a, bool need_b) const {
    if (grad_enabled()) return backward_recorded(dy, dx, need_x, need_a, need_b);
    LowRankGradients g{dx, {}, {}};
    Tensor a = a_(), b = b_(), t;
    if (need_x || need_a) {
      t = empty({dy.size(0), a.size(0)}, {sum_dtype(dy.dtype()), dy.device()});
      multiply(dy, b, t, scale_);
    }
    if (need_x) {
      if (!dx) g.x = empty({dy.size(0), a.size(1)}, {x_dtype_, dy.device()});
      multiply(t, a, g.x, 1, dx.defined());
    }
    if (need_a) multiply(transposed(t), as_matrix(x_()), g.a = empty_like(a));
    if (need_b) multiply(transposed(dy), h_(), g.b = empty_like(b), scale_);
    return g;
  }

 private:
  // The same out of operations, for second derivatives.
  LowRankGradients backward_recorded(const Tensor& dy, const Tensor& dx, bool need_x, bool need_a, bool need_b) const {
    LowRankGradients g{dx, {}, {}};
    Tensor a = a_(), b = b_();
    Tensor t = matmul(dy, b) * scale_;
    if (need_x) {
      Tensor term = to(matmul(t, a), x_dtype_);
      g.x = dx ? dx + term : term;
    }
    if (!need_a && !need_b) return g;
    Tensor x = reshape(x_(), {dy.size(0), a.size(1)});
    if (need_a) g.a = to(matmul(transpose(t), x), a.dtype());
    if (need_b) g.b = to(matmul(transpose(dy), matmul(x, transpose(a))) * scale_, b.dtype());
    return g;
  }

  Saved x_, a_, b_, h_;
  DType x_dtype_;
  double scale_;
};

Tensor as_rows_of(const Tensor& dy) {
  return reshape(dy, {row_count(dy.shape()), dy.size(-1)});
}
Tensor shaped(const Tensor& matrix, const Dims& shape) {
  return matrix ? reshape(matrix, shape) : matrix;
}

}  // namespace

Tensor linear_low_rank(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& a, const Tensor& b,
                       double scale) {
  check_linear("linear_low_rank", x, w, bias);
  check_low_rank("linear_low_rank", x, a, b, w.size(0));
  Tensor y = linear_forward("linear_low_rank", x, w, bias);
  Tensor h = add_term(x, a, b, scale, y);
  auto formula = [term = LowRankTerm(x, a, b, h, scale), w = saved(wants(x) ? w : Tensor()),
                  x = saved(wants(w) ? x : Tensor()), shape = x.shape(), x_dtype = x.dtype(), w_dtype = w.dtype(),
                  bias_dtype = bias ? bias.dtype() : DType::f32](const Tensor& dy, const std::vector<bool>& needs) {
    Tensor rows = as_rows_of(dy), dx, dw, dbias;
    if (needs[0]) dx = to(matmul(rows, w()), x_dtype);
    LowRankGradients g = term.backward(rows, dx, needs[0], needs[3], needs[4]);
    if (needs[1]) dw = to(matmul(transpose(rows), as_rows_of(x())), w_dtype);
    if (needs[2]) dbias = to(sum(rows, {0}), bias_dtype);
    return std::vector<Tensor>{shaped(g.x, shape), dw, dbias, g.a, g.b};
  };
  return record("linear_low_rank", y, joint({x, w, bias, a, b}, formula));
}

Tensor add_low_rank_(const Tensor& y, const Tensor& x, const Tensor& a, const Tensor& b, double scale) {
  check(y.rank() >= 1 && x.rank() == y.rank() && row_count(x.shape()) == row_count(y.shape()),
        "add_low_rank_: x and y must have the same rows, got {} and {}", x.shape(), y.shape());
  check_low_rank("add_low_rank_", x, a, b, y.size(-1));
  product_dtype("add_low_rank_", y, x);
  bool leaf = wants(y) && !autograd_meta(y)->node;
  bool overwrite = y.is_contiguous() && y.storage()->writable() && !y.storage()->retained_for_backward() && !leaf;
  Tensor sum = overwrite ? alias(y) : clone_data(y);
  Tensor h = add_term(x, a, b, scale, sum);
  auto formula = [term = LowRankTerm(x, a, b, h, scale), shape = x.shape()](const Tensor& dy,
                                                                            const std::vector<bool>& needs) {
    LowRankGradients g = term.backward(as_rows_of(dy), {}, needs[1], needs[2], needs[3]);
    return std::vector<Tensor>{dy, shaped(g.x, shape), g.a, g.b};
  };
  return record("add_low_rank_", sum, joint({y, x, a, b}, formula));
}

}  // namespace strata
