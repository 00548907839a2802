#include "tensor/kernels/pointwise.h"

#include "tensor/kernels/pointwise_functors.h"
#include "tensor/kernels/pointwise_loop.h"

namespace strata {
namespace {

/// Calls f<T>() with the compute type of a number; bool counts as u8.
template <class F>
void with_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f.template operator()<double>();
    case DType::i64: return f.template operator()<int64_t>();
    case DType::i32: return f.template operator()<int32_t>();
    case DType::i8: return f.template operator()<int8_t>();
    case DType::u8:
    case DType::boolean: return f.template operator()<uint8_t>();
    default: return f.template operator()<float>();
  }
}

template <class F>
void binary(const Tensor& a, const Tensor& b, const Tensor& y) {
  F f;
  with_number(y.dtype(), [&]<class T>() { pointwise::run(pointwise::body<F, T, T, T>, &f, {a, b}, {y}); });
}

template <class F>
void compare(const Tensor& a, const Tensor& b, const Tensor& y) {
  F f;
  with_number(a.dtype(), [&]<class T>() { pointwise::run(pointwise::body<F, bool, T, T>, &f, {a, b}, {y}); });
}

template <class F>
void scalar(const Tensor& x, double value, const Tensor& y) {
  F f{value};
  with_number(y.dtype(), [&]<class T>() { pointwise::run(pointwise::body<F, T, T>, &f, {x}, {y}); });
}

void where_cpu(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& y) {
  functors::Where f;
  with_dtype(y.dtype(), "where", [&]<class T>() {
    pointwise::run(pointwise::body<functors::Where, T, bool, T, T>, &f, {condition, a, b}, {y},
                   pointwise::Reduced::as_is);
  });
}

constexpr auto kCpu = Device::Type::cpu;
Register registered[] = {
    {kernels::add, kCpu, binary<functors::Add>},
    {kernels::sub, kCpu, binary<functors::Sub>},
    {kernels::mul, kCpu, binary<functors::Mul>},
    {kernels::maximum, kCpu, binary<functors::Maximum>},
    {kernels::minimum, kCpu, binary<functors::Minimum>},
    {kernels::add_scalar, kCpu, scalar<functors::AddScalar>},
    {kernels::mul_scalar, kCpu, scalar<functors::MulScalar>},
    {kernels::equal, kCpu, compare<functors::Equal>},
    {kernels::less, kCpu, compare<functors::Less>},
    {kernels::greater, kCpu, compare<functors::Greater>},
    {kernels::where, kCpu, where_cpu},
};

}  // namespace
}  // namespace strata
