#include "tensor/kernels/optim.h"

#include <cmath>
#include <vector>

#include "tensor/parallel.h"

namespace strata {
namespace {

using kernels::AdamWStep;
using kernels::SgdStep;

constexpr int64_t kGrain = 16384;
constexpr int64_t kChunk = 4096;  // of sum_of_squares: its partial sums are the same for any number of threads

/// f.operator()<T, G>(): T of the parameter, G of its gradient (T, or a 16-bit type for f32).
template <class F>
void with_types(const char* op, const Tensor& p, const Tensor& g, F&& f) {
  if (p.dtype() == DType::f64) return f.template operator()<double, double>();
  check(p.dtype() == DType::f32, "{}: parameters must be f32 or f64, got {}", op, dtype_name(p.dtype()));
  switch (g.dtype()) {
    case DType::f16: return f.template operator()<float, Half>();
    case DType::bf16: return f.template operator()<float, BFloat16>();
    default: return f.template operator()<float, float>();
  }
}

template <class T, class G>
void adamw_part(T* p, const G* g, T* m, T* v, int64_t n, const AdamWStep& s) {
  auto t = static_cast<double>(s.step);
  auto decay = static_cast<T>(1 - s.lr * s.weight_decay), scale = static_cast<T>(s.grad_scale);
  auto b1 = static_cast<T>(s.beta1), c1 = static_cast<T>(1 - s.beta1);
  auto b2 = static_cast<T>(s.beta2), c2 = static_cast<T>(1 - s.beta2);
  auto rate = static_cast<T>(s.lr / (1 - std::pow(s.beta1, t))), eps = static_cast<T>(s.eps);
  auto correction = static_cast<T>(1 / std::sqrt(1 - std::pow(s.beta2, t)));
  for (int64_t i = 0; i < n; ++i) {
    T gradient = convert<T>(g[i]) * scale;
    m[i] = b1 * m[i] + c1 * gradient;
    v[i] = b2 * v[i] + c2 * gradient * gradient;
    p[i] = decay * p[i] - rate * m[i] / (std::sqrt(v[i]) * correction + eps);
  }
}

void adamw_cpu(const Tensor& p, const Tensor& g, const Tensor& m, const Tensor& v, const AdamWStep& step) {
  if (p.numel() == 0) return;
  with_types("adamw", p, g, [&]<class T, class G>() {
    T *values = p.mutable_data<T>(), *first = m.mutable_data<T>(), *second = v.mutable_data<T>();
    const G* gradient = g.data<G>();
    parallel_for(p.numel(), kGrain, [&](int64_t begin, int64_t end) {
      adamw_part(values + begin, gradient + begin, first + begin, second + begin, end - begin, step);
    });
  });
}

template <class T, class G>
void sgd_part(T* p, const G* g, T* buffer, int64_t n, const SgdStep& s) {
  auto rate = static_cast<T>(s.lr), decay = static_cast<T>(s.weight_decay), scale = static_cast<T>(s.grad_scale);
  if (!buffer) {
    for (int64_t i = 0; i < n; ++i) p[i] -= rate * (convert<T>(g[i]) * scale + decay * p[i]);
    return;
  }
  auto kept = static_cast<T>(s.first ? 0 : s.momentum), added = static_cast<T>(s.first ? 1 : 1 - s.dampening);
  auto ahead = static_cast<T>(s.nesterov ? s.momentum : 1), direct = static_cast<T>(s.nesterov ? 1 : 0);
  for (int64_t i = 0; i < n; ++i) {
    T gradient = convert<T>(g[i]) * scale + decay * p[i];
    T before = s.first ? T(0) : buffer[i];  // the first step may find uninitialised memory
    buffer[i] = kept * before + added * gradient;
    p[i] -= rate * (direct * gradient + ahead * buffer[i]);
  }
}

void sgd_cpu(const Tensor& p, const Tensor& g, const Tensor& buffer, const SgdStep& step) {
  if (p.numel() == 0) return;
  with_types("sgd", p, g, [&]<class T, class G>() {
    T *values = p.mutable_data<T>(), *momentum = buffer ? buffer.mutable_data<T>() : nullptr;
    const G* gradient = g.data<G>();
    parallel_for(p.numel(), kGrain, [&](int64_t begin, int64_t end) {
      sgd_part(values + begin, gradient + begin, momentum ? momentum + begin : nullptr, end - begin, step);
    });
  });
}

template <class T>
double squares(const T* g, int64_t n) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) {
      auto x = convert<double>(g[i + k]);
      lanes[k] += x * x;
    }
  for (int k = 0; i < n; ++i, ++k) lanes[k] += convert<double>(g[i]) * convert<double>(g[i]);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

void sum_of_squares_cpu(const Tensor& g, double& sum) {
  int64_t count = g.numel(), chunks = (count + kChunk - 1) / kChunk;
  std::vector<double> parts(static_cast<size_t>(chunks));
  with_float(g.dtype(), "sum_of_squares", [&]<class T>() {
    const T* data = g.data<T>();
    parallel_for(chunks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        parts[static_cast<size_t>(c)] = squares(data + c * kChunk, std::min(kChunk, count - c * kChunk));
    });
  });
  sum = 0;
  for (double part : parts) sum += part;
}

Register adamw_registered{kernels::adamw, Device::Type::cpu, adamw_cpu};
Register sgd_registered{kernels::sgd, Device::Type::cpu, sgd_cpu};
Register sum_of_squares_registered{kernels::sum_of_squares, Device::Type::cpu, sum_of_squares_cpu};

}  // namespace
}  // namespace strata
