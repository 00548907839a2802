#include "autograd/ops/pointwise.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/pointwise.h"

namespace strata {

namespace {

/// Two operands brought to one shape, as plain views for the kernel.
struct Operands {
  Tensor a, b;
};

Tensor broadcast(const Tensor& t, const Dims& shape) {
  return t.shape() == shape ? t : alias(t, t.layout().broadcast_to(shape));
}

Operands operands(const char* op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "{}: operands must have one dtype, got {} and {}", op, dtype_name(a.dtype()),
        dtype_name(b.dtype()));
  check(a.device() == b.device(), "{}: operands must live on one device, got {} and {}", op, a.device().name(),
        b.device().name());
  Dims shape = a.shape() == b.shape() ? a.shape() : broadcast_shapes(a.shape(), b.shape(), op);
  return {broadcast(a, shape), broadcast(b, shape)};
}

void check_number(const char* op, const Tensor& x) {
  check(x.dtype() != DType::boolean, "{}: expected numbers, got bool", op);
}

void check_floating(const char* op, const Tensor& x) {
  check(is_floating(x.dtype()), "{}: expected a floating dtype, got {}", op, dtype_name(x.dtype()));
}

Tensor run(const kernels::UnaryKernel& kernel, const Tensor& x) {
  check_floating(kernel.name(), x);
  Tensor y = empty_like(x);
  kernel(x.device(), x, y);
  return y;
}

Tensor run(const kernels::BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  auto [x1, x2] = operands(kernel.name(), a, b);
  check_number(kernel.name(), a);
  Tensor y = empty_like(x1);
  kernel(y.device(), x1, x2, y);
  return y;
}

Tensor run(const kernels::ScalarKernel& kernel, const char* op, const Tensor& x, double value) {
  check_number(op, x);
  check(is_floating(x.dtype()) || std::nearbyint(value) == value, "{}: a tensor of {} needs a whole number, got {}", op,
        dtype_name(x.dtype()), value);
  Tensor y = empty_like(x);
  kernel(x.device(), x, value, y);
  return y;
}

Tensor compare(const kernels::BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  auto [x1, x2] = operands(kernel.name(), a, b);
  Tensor y = empty(x1.shape(), {DType::boolean, a.device()});
  kernel(y.device(), x1, x2, y);
  return y;
}

/// A number of x's dtype that broadcasts against x.
Tensor number(double value, const Tensor& x) {
  return scalar(value, {x.dtype(), x.device()});
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  auto dy_itself = [](const Tensor& dy) { return dy; };
  return record("add", run(kernels::add, a, b), wrt(a, dy_itself), wrt(b, dy_itself));
}

Tensor sub(const Tensor& a, const Tensor& b) {
  return record("sub", run(kernels::sub, a, b), wrt(a, [](const Tensor& dy) { return dy; }),
                wrt(b, [](const Tensor& dy) { return neg(dy); }));
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor y = run(kernels::mul, a, b);
  return record("mul", y, wrt(a, [b = saved(b)](const Tensor& dy) { return dy * b(); }),
                wrt(b, [a = saved(a)](const Tensor& dy) { return dy * a(); }));
}

Tensor div(const Tensor& a, const Tensor& b) {
  check_floating("div", a);
  Tensor y = run(kernels::div, a, b);
  return record("div", y, wrt(a, [b = saved(b)](const Tensor& dy) { return dy / b(); }),
                wrt(b, [y = saved_output(y), b = saved(b)](const Tensor& dy) { return neg(dy * y() / b()); }));
}

Tensor add(const Tensor& a, double b) {
  return record("add", run(kernels::add_scalar, "add", a, b), wrt(a, [](const Tensor& dy) { return dy; }));
}

Tensor mul(const Tensor& a, double b) {
  return record("mul", run(kernels::mul_scalar, "mul", a, b), wrt(a, [b](const Tensor& dy) { return dy * b; }));
}

// Of equals, a gets the gradient.
Tensor maximum(const Tensor& a, const Tensor& b) {
  Tensor y = run(kernels::maximum, a, b);
  auto is_b = [a = saved(a), b = saved(b)]() { return less(a(), b()); };
  return record("maximum", y, wrt(a, [is_b](const Tensor& dy) { return where(is_b(), number(0, dy), dy); }),
                wrt(b, [is_b](const Tensor& dy) { return where(is_b(), dy, number(0, dy)); }));
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  Tensor y = run(kernels::minimum, a, b);
  auto is_b = [a = saved(a), b = saved(b)]() { return greater(a(), b()); };
  return record("minimum", y, wrt(a, [is_b](const Tensor& dy) { return where(is_b(), number(0, dy), dy); }),
                wrt(b, [is_b](const Tensor& dy) { return where(is_b(), dy, number(0, dy)); }));
}

Tensor pow(const Tensor& x, double exponent) {
  check_floating("pow", x);
  Tensor y = run(kernels::pow, "pow", x, exponent);
  return record("pow", y, wrt(x, [x = saved(x), exponent](const Tensor& dy) {
                  if (exponent == 0) return zeros_like(dy);
                  return dy * (pow(x(), exponent - 1) * exponent);
                }));
}

Tensor neg(const Tensor& x) {
  return record("neg", run(kernels::neg, x), wrt(x, [](const Tensor& dy) { return neg(dy); }));
}

// The gradient at 0 is 0.
Tensor abs(const Tensor& x) {
  return record("abs", run(kernels::abs, x), wrt(x, [x = saved(x)](const Tensor& dy) {
                  Tensor zero = number(0, dy);
                  return where(greater(x(), zero), dy, where(less(x(), zero), neg(dy), zero));
                }));
}

Tensor exp(const Tensor& x) {
  Tensor y = run(kernels::exp, x);
  return record("exp", y, wrt(x, [y = saved_output(y)](const Tensor& dy) { return dy * y(); }));
}

Tensor log(const Tensor& x) {
  return record("log", run(kernels::log, x), wrt(x, [x = saved(x)](const Tensor& dy) { return dy / x(); }));
}

Tensor sqrt(const Tensor& x) {
  Tensor y = run(kernels::sqrt, x);
  return record("sqrt", y, wrt(x, [y = saved_output(y)](const Tensor& dy) { return dy * 0.5 / y(); }));
}

Tensor rsqrt(const Tensor& x) {
  Tensor y = run(kernels::rsqrt, x);
  return record("rsqrt", y, wrt(x, [y = saved_output(y)](const Tensor& dy) {
                  Tensor value = y();
                  return dy * -0.5 * (value * value * value);
                }));
}

Tensor erf(const Tensor& x) {
  return record("erf", run(kernels::erf, x), wrt(x, [x = saved(x)](const Tensor& dy) {
                  constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
                  Tensor value = x();
                  return dy * exp(neg(value * value)) * kTwoOverSqrtPi;
                }));
}

Tensor sin(const Tensor& x) {
  return record("sin", run(kernels::sin, x), wrt(x, [x = saved(x)](const Tensor& dy) { return dy * cos(x()); }));
}

Tensor cos(const Tensor& x) {
  return record("cos", run(kernels::cos, x), wrt(x, [x = saved(x)](const Tensor& dy) { return neg(dy * sin(x())); }));
}

// Derivatives in one fused pass where no second derivative is asked for, the same formula out of ops otherwise.

namespace {

Tensor tanh_backward(const Tensor& y, const Tensor& dy) {
  return grad_enabled() ? dy * (1.0 - y * y) : run(kernels::tanh_backward, y, dy);
}

Tensor sigmoid_backward(const Tensor& y, const Tensor& dy) {
  return grad_enabled() ? dy * y * (1.0 - y) : run(kernels::sigmoid_backward, y, dy);
}

Tensor relu_backward(const Tensor& y, const Tensor& dy) {
  return grad_enabled() ? where(greater(y, number(0, y)), dy, number(0, dy)) : run(kernels::relu_backward, y, dy);
}

Tensor silu_backward(const Tensor& x, const Tensor& dy) {
  if (!grad_enabled()) return run(kernels::silu_backward, x, dy);
  Tensor s = sigmoid(x);
  return dy * s * (x * (1.0 - s) + 1.0);
}

Tensor gelu_backward(const Tensor& x, const Tensor& dy) {
  if (!grad_enabled()) return run(kernels::gelu_backward, x, dy);
  constexpr double kSqrtHalf = 0.70710678118654752440, kDensityAtZero = 0.39894228040143267794;
  Tensor cdf = (erf(x * kSqrtHalf) + 1.0) * 0.5;
  return dy * (cdf + x * exp(x * x * -0.5) * kDensityAtZero);
}

Tensor gelu_tanh_backward(const Tensor& x, const Tensor& dy) {
  if (!grad_enabled()) return run(kernels::gelu_tanh_backward, x, dy);
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588, kCubic = 0.044715;
  Tensor square = x * x;
  Tensor t = tanh(x * (square * kCubic + 1.0) * kSqrtTwoOverPi);
  Tensor du = (square * (3 * kCubic) + 1.0) * kSqrtTwoOverPi;
  return dy * ((t + 1.0 + x * (1.0 - t * t) * du) * 0.5);
}

std::vector<Tensor> swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dy) {
  if (grad_enabled()) return {silu_backward(gate, dy * up), dy * silu(gate)};
  Tensor dgate = empty_like(gate), dup = empty_like(up);
  kernels::swiglu_backward(dy.device(), dy, gate, up, dgate, dup);
  return {dgate, dup};
}

}  // namespace

Tensor tanh(const Tensor& x) {
  Tensor y = run(kernels::tanh, x);
  return record("tanh", y, wrt(x, [y = saved_output(y)](const Tensor& dy) { return tanh_backward(y(), dy); }));
}

Tensor sigmoid(const Tensor& x) {
  Tensor y = run(kernels::sigmoid, x);
  return record("sigmoid", y, wrt(x, [y = saved_output(y)](const Tensor& dy) { return sigmoid_backward(y(), dy); }));
}

Tensor relu(const Tensor& x) {
  Tensor y = run(kernels::relu, x);
  return record("relu", y, wrt(x, [y = saved_output(y)](const Tensor& dy) { return relu_backward(y(), dy); }));
}

Tensor silu(const Tensor& x) {
  Tensor y = run(kernels::silu, x);
  return record("silu", y, wrt(x, [x = saved(x)](const Tensor& dy) { return silu_backward(x(), dy); }));
}

Tensor gelu(const Tensor& x, bool tanh_approximation) {
  Tensor y = run(tanh_approximation ? kernels::gelu_tanh : kernels::gelu, x);
  return record("gelu", y, wrt(x, [x = saved(x), tanh_approximation](const Tensor& dy) {
                  return tanh_approximation ? gelu_tanh_backward(x(), dy) : gelu_backward(x(), dy);
                }));
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  check_floating("swiglu", gate);
  check(gate.shape() == up.shape(), "swiglu: gate and up must have one shape, got {} and {}", gate.shape(), up.shape());
  Tensor y = run(kernels::swiglu, gate, up);
  auto formula = [gate = saved(gate), up = saved(up)](const Tensor& dy, const std::vector<bool>&) {
    return swiglu_backward(gate(), up(), dy);
  };
  return record("swiglu", y, joint({gate, up}, formula));
}

Tensor equal(const Tensor& a, const Tensor& b) {
  return compare(kernels::equal, a, b);
}
Tensor less(const Tensor& a, const Tensor& b) {
  return compare(kernels::less, a, b);
}
Tensor greater(const Tensor& a, const Tensor& b) {
  return compare(kernels::greater, a, b);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check(condition.dtype() == DType::boolean, "where: condition must be bool, got {}", dtype_name(condition.dtype()));
  check(condition.device() == a.device(), "where: condition must live on {}, got {}", a.device().name(),
        condition.device().name());
  auto [x1, x2] = operands("where", a, b);
  Dims shape = broadcast_shapes(condition.shape(), x1.shape(), "where");
  Tensor y = empty(shape, {a.dtype(), a.device()});
  kernels::where(y.device(), broadcast(condition, shape), broadcast(x1, shape), broadcast(x2, shape), y);
  auto chosen = [condition = saved(condition)](const Tensor& dy, bool first) {
    return first ? where(condition(), dy, number(0, dy)) : where(condition(), number(0, dy), dy);
  };
  return record("where", y, wrt(a, [chosen](const Tensor& dy) { return chosen(dy, true); }),
                wrt(b, [chosen](const Tensor& dy) { return chosen(dy, false); }));
}

namespace {

void check_writable(const char* op, const Tensor& a) {
  check(!grad_enabled() || !requires_grad(a),
        "{}: a tensor that wants gradients cannot be written in place; use NoGrad, got shape {}", op, a.shape());
}

}  // namespace

void add_(const Tensor& a, const Tensor& b) {
  check_writable("add_", a);
  check_number("add_", a);
  auto [x1, x2] = operands("add_", a, b);
  check(x1.shape() == a.shape(), "add_: b must broadcast to a's shape {}, got {}", a.shape(), b.shape());
  kernels::add(a.device(), a, x2, a);
}

void mul_(const Tensor& a, double b) {
  check_writable("mul_", a);
  check_number("mul_", a);
  kernels::mul_scalar(a.device(), a, b, a);
}

}  // namespace strata
