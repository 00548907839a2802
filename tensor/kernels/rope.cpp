#include "tensor/kernels/rope.h"

#include "tensor/parallel.h"

namespace strata {
namespace {

constexpr int64_t kGrain = 16384;

// One head: pairs (i, i + half) turned, the rest copied.
template <class T, class C>
void rotate(const T* x, const C* c, const C* s, C sign, int64_t half, int64_t D, T* y) {
  using A = std::common_type_t<compute_t<T>, C>;
  for (int64_t i = 0; i < half; ++i) {
    A a = convert<A>(x[i]), b = convert<A>(x[i + half]), cosine = c[i], sine = sign * s[i];
    y[i] = convert<T>(a * cosine - b * sine);
    y[i + half] = convert<T>(b * cosine + a * sine);
  }
  for (int64_t i = 2 * half; i < D; ++i) y[i] = x[i];
}

template <class T, class C, class I>
void rope_rows(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions, bool inverse,
               const Tensor& y) {
  int64_t N = x.size(0), H = x.size(1), D = x.size(2), half = cos.size(1);
  int64_t row = x.strides()[0], head = x.strides()[1];
  const T* from = x.data<T>();
  const C *c = cos.data<C>(), *s = sin.data<C>();
  const I* at = positions.data<I>();
  T* to = y.mutable_data<T>();
  C sign = inverse ? C(-1) : C(1);
  parallel_for(N, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, H * D)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      int64_t angle = static_cast<int64_t>(at[n]) * half;
      for (int64_t h = 0; h < H; ++h)
        rotate(from + n * row + h * head, c + angle, s + angle, sign, half, D, to + (n * H + h) * D);
    }
  });
}

void rope_cpu(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions, bool inverse,
              const Tensor& y) {
  if (x.numel() == 0) return;
  with_float(x.dtype(), "rope", [&]<class T>() {
    with_index(positions.dtype(), "rope", [&]<class I>() {
      if (cos.dtype() == DType::f64)
        rope_rows<T, double, I>(x, cos, sin, positions, inverse, y);
      else
        rope_rows<T, float, I>(x, cos, sin, positions, inverse, y);
    });
  });
}

Register rope_registered{kernels::rope, Device::Type::cpu, rope_cpu};

}  // namespace
}  // namespace strata
