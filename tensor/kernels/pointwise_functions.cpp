// The floating-point half of the pointwise family: elementary functions, activations and their derivatives.
#include "tensor/kernels/pointwise.h"
#include "tensor/kernels/pointwise_functors.h"
#include "tensor/kernels/pointwise_loop.h"

namespace strata {
namespace {

template <class F>
void unary(const Tensor& x, const Tensor& y) {
  pointwise::run_floating(F{}, y, x);
}

template <class F>
void binary(const Tensor& a, const Tensor& b, const Tensor& y) {
  pointwise::run_floating(F{}, y, a, b);
}

void pow_cpu(const Tensor& x, double exponent, const Tensor& y) {
  pointwise::run_floating(functors::Pow{exponent}, y, x);
}

template <class T>
void swiglu_backward_body(const void*, int64_t n, const std::byte* const* in, std::byte* const* out) {
  const T* dy = reinterpret_cast<const T*>(in[0]);
  const T* gate = reinterpret_cast<const T*>(in[1]);
  const T* up = reinterpret_cast<const T*>(in[2]);
  T* dgate = reinterpret_cast<T*>(out[0]);
  T* dup = reinterpret_cast<T*>(out[1]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T s = math::sigmoid(gate[i]);
    dgate[i] = dy[i] * up[i] * s * (T(1) + gate[i] * (T(1) - s));
    dup[i] = dy[i] * gate[i] * s;
  }
}

void swiglu_backward_cpu(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& dgate,
                         const Tensor& dup) {
  pointwise::Body body = dy.dtype() == DType::f64 ? swiglu_backward_body<double> : swiglu_backward_body<float>;
  pointwise::run(body, nullptr, {dy, gate, up}, {dgate, dup});
}

constexpr auto kCpu = Device::Type::cpu;
Register registered[] = {
    {kernels::div, kCpu, binary<functors::Div>},
    {kernels::pow, kCpu, pow_cpu},
    {kernels::neg, kCpu, unary<functors::Neg>},
    {kernels::abs, kCpu, unary<functors::Abs>},
    {kernels::exp, kCpu, unary<functors::Exp>},
    {kernels::log, kCpu, unary<functors::Log>},
    {kernels::sqrt, kCpu, unary<functors::Sqrt>},
    {kernels::rsqrt, kCpu, unary<functors::Rsqrt>},
    {kernels::sin, kCpu, unary<functors::Sin>},
    {kernels::cos, kCpu, unary<functors::Cos>},
    {kernels::erf, kCpu, unary<functors::Erf>},
    {kernels::tanh, kCpu, unary<functors::Tanh>},
    {kernels::sigmoid, kCpu, unary<functors::Sigmoid>},
    {kernels::relu, kCpu, unary<functors::Relu>},
    {kernels::silu, kCpu, unary<functors::Silu>},
    {kernels::gelu, kCpu, unary<functors::Gelu>},
    {kernels::gelu_tanh, kCpu, unary<functors::GeluTanh>},
    {kernels::swiglu, kCpu, binary<functors::Swiglu>},
    {kernels::tanh_backward, kCpu, binary<functors::TanhBackward>},
    {kernels::sigmoid_backward, kCpu, binary<functors::SigmoidBackward>},
    {kernels::relu_backward, kCpu, binary<functors::ReluBackward>},
    {kernels::silu_backward, kCpu, binary<functors::SiluBackward>},
    {kernels::gelu_backward, kCpu, binary<functors::GeluBackward>},
    {kernels::gelu_tanh_backward, kCpu, binary<functors::GeluTanhBackward>},
    {kernels::swiglu_backward, kCpu, swiglu_backward_cpu},
};

}  // namespace
}  // namespace strata
