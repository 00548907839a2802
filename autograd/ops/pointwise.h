// Element by element, with NumPy broadcasting. Operands have one dtype; results keep it.
// f16/bf16 compute in f32.
#pragma once

#include "tensor/tensor.h"

namespace strata {

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, double b);
Tensor mul(const Tensor& a, double b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// x^exponent for a constant exponent.
Tensor pow(const Tensor& x, double exponent);

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
/// x * sigmoid(x).
Tensor silu(const Tensor& x);
/// x * Phi(x) (exact, by erf), or the tanh approximation of Hendrycks & Gimpel 2016.
Tensor gelu(const Tensor& x, bool tanh_approximation = false);
/// silu(gate) * up in one pass (Shazeer 2020, "GLU variants improve transformer").
Tensor swiglu(const Tensor& gate, const Tensor& up);

/// Comparisons give bool tensors and no gradient.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
/// condition ? a : b; condition is bool.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

/// In place, records nothing; b broadcasts to a's shape. Refuses a tensor that wants gradients while they are enabled.
void add_(const Tensor& a, const Tensor& b);
void mul_(const Tensor& a, double b);

// clang-format off
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, double b) { return add(a, -b); }
inline Tensor operator-(double a, const Tensor& b) { return add(neg(b), a); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, double b) { return mul(a, 1.0 / b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
// clang-format on

}  // namespace strata
