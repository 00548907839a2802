#include "tensor/kernels/optim.h"

#include <cmath>
#include <vector>

#include "tensor/parallel.h"

namespace strata {
namespace {

constexpr int64_t kGrain = 16384;

// f64 parameters update in f64, all others in f32.
template <class F>
void with_master(DType dtype, const char* name, F&& f) {
  check(dtype == DType::f32 || dtype == DType::f64, "{}: parameters must be f32 or f64, got {}", name,
        dtype_name(dtype));
  if (dtype == DType::f64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

// Reads g, m, v, p once and writes m, v, p once: bound by memory.
void adamw_cpu(const Tensor& param, const Tensor& gradient, const Tensor& first, const Tensor& second,
               const kernels::AdamWStep& s) {
  with_master(param.dtype(), "adamw", [&]<class T>() {
    T* p = param.mutable_data<T>();
    const T* g = gradient.data<T>();
    T* m = first.mutable_data<T>();
    T* v = second.mutable_data<T>();
    auto b1 = static_cast<T>(s.beta1), b2 = static_cast<T>(s.beta2), eps = static_cast<T>(s.eps);
    auto decay = static_cast<T>(1 - s.lr * s.weight_decay);
    auto scale = static_cast<T>(s.grad_scale);
    double t = static_cast<double>(s.step);
    auto rate = static_cast<T>(s.lr / (1 - std::pow(s.beta1, t)));
    auto root = static_cast<T>(1 / std::sqrt(1 - std::pow(s.beta2, t)));
    parallel_for(param.numel(), kGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        T gi = g[i] * scale;
        m[i] = b1 * m[i] + (1 - b1) * gi;
        v[i] = b2 * v[i] + (1 - b2) * gi * gi;
        p[i] = p[i] * decay - rate * m[i] / (std::sqrt(v[i]) * root + eps);
      }
    });
  });
}

void sgd_cpu(const Tensor& param, const Tensor& gradient, const Tensor& buffer, const kernels::SgdStep& s) {
  with_master(param.dtype(), "sgd", [&]<class T>() {
    T* p = param.mutable_data<T>();
    const T* g = gradient.data<T>();
    T* b = buffer.defined() ? buffer.mutable_data<T>() : nullptr;
    auto lr = static_cast<T>(s.lr), momentum = static_cast<T>(s.momentum), decay = static_cast<T>(s.weight_decay);
    auto fresh = static_cast<T>(s.first ? 1 : 1 - s.dampening);
    auto old = static_cast<T>(s.first ? 0 : s.momentum);
    auto scale = static_cast<T>(s.grad_scale);
    bool nesterov = s.nesterov;
    parallel_for(param.numel(), kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T gi = g[i] * scale + decay * p[i];
        if (b) {
          b[i] = old * b[i] + fresh * gi;
          gi = nesterov ? gi + momentum * b[i] : b[i];
        }
        p[i] -= lr * gi;
      }
    });
  });
}

// Partial sums over fixed chunks, added in order: the same bits for any number of threads.
void sum_of_squares_cpu(const Tensor& gradient, double& sum) {
  with_float(gradient.dtype(), "sum_of_squares", [&]<class T>() {
    const T* g = gradient.data<T>();
    int64_t n = gradient.numel();
    std::vector<double> parts(static_cast<size_t>((n + kGrain - 1) / kGrain));
    parallel_for(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        double total = 0;
        for (int64_t i = part * kGrain; i < std::min(n, (part + 1) * kGrain); ++i) {
          auto x = convert<double>(g[i]);
          total += x * x;
        }
        parts[static_cast<size_t>(part)] = total;
      }
    });
    sum = 0;
    for (double part : parts) sum += part;
  });
}

Register adamw_registered{kernels::adamw, Device::Type::cpu, adamw_cpu};
Register sgd_registered{kernels::sgd, Device::Type::cpu, sgd_cpu};
Register sum_of_squares_registered{kernels::sum_of_squares, Device::Type::cpu, sum_of_squares_cpu};

}  // namespace
}  // namespace strata
