#include "tensor/kernels/softmax.h"

#include "tensor/kernels/row_math.h"
#include "tensor/parallel.h"

namespace strata {

namespace {

/// Calls f(first element, C) for every row of t, in parallel.
template <class F>
void for_each_row(const Tensor& t, F&& f) {
  if (t.numel() == 0) return;
  int64_t columns = t.size(-1);
  constexpr int64_t kGrain = 1 << 14;
  parallel_for(t.numel() / columns, std::max<int64_t>(1, kGrain / columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r * columns, columns);
  });
}

// y holds exp(x - max) between the passes; for f16 and bf16 it is computed twice instead of rounded twice.
template <class T>
void softmax_row(const T* x, T* y, int64_t n) {
  using A = compute_t<T>;
  A top = rows::max(x, n);
  auto exp_of = [&](int64_t i) { return math::exp(convert<A>(x[i]) - top); };
  double total = 0;
  if constexpr (std::is_same_v<T, A>)
    total = rows::sum<A>(n, [&](int64_t i) { return y[i] = exp_of(i); });
  else
    total = rows::sum<A>(n, exp_of);
  A scale = static_cast<A>(1 / total);
  if constexpr (std::is_same_v<T, A>)
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  else
    for (int64_t i = 0; i < n; ++i) y[i] = convert<T>(exp_of(i) * scale);
}

void softmax_cpu(const Tensor& x, const Tensor& y) {
  with_float(x.dtype(), "softmax", [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    for_each_row(x, [&](int64_t at, int64_t n) { softmax_row(from + at, to + at, n); });
  });
}

void log_softmax_cpu(const Tensor& x, const Tensor& y) {
  with_float(x.dtype(), "log_softmax", [&]<class T>() {
    using A = compute_t<T>;
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    for_each_row(x, [&](int64_t at, int64_t n) {
      auto [top, log_sum] = rows::log_sum_exp(from + at, n);
      for (int64_t i = 0; i < n; ++i) to[at + i] = convert<T>(convert<A>(from[at + i]) - top - log_sum);
    });
  });
}

void softmax_backward_cpu(const Tensor& dy, const Tensor& y, const Tensor& dx) {
  with_float(y.dtype(), "softmax_backward", [&]<class T>() {
    using A = compute_t<T>;
    const T *g = dy.data<T>(), *p = y.data<T>();
    T* to = dx.mutable_data<T>();
    for_each_row(y, [&](int64_t at, int64_t n) {
      auto product = [&](int64_t i) { return convert<A>(g[at + i]) * convert<A>(p[at + i]); };
      A dot = static_cast<A>(rows::sum<A>(n, product));
      for (int64_t i = at; i < at + n; ++i) to[i] = convert<T>(convert<A>(p[i]) * (convert<A>(g[i]) - dot));
    });
  });
}

void log_softmax_backward_cpu(const Tensor& dy, const Tensor& y, const Tensor& dx) {
  with_float(y.dtype(), "log_softmax_backward", [&]<class T>() {
    using A = compute_t<T>;
    const T *g = dy.data<T>(), *log_p = y.data<T>();
    T* to = dx.mutable_data<T>();
    for_each_row(y, [&](int64_t at, int64_t n) {
      A total = static_cast<A>(rows::sum<A>(n, [&](int64_t i) { return convert<A>(g[at + i]); }));
      for (int64_t i = at; i < at + n; ++i)
        to[i] = convert<T>(convert<A>(g[i]) - math::exp(convert<A>(log_p[i])) * total);
    });
  });
}

Register softmax_registered{kernels::softmax, Device::Type::cpu, softmax_cpu};
Register log_softmax_registered{kernels::log_softmax, Device::Type::cpu, log_softmax_cpu};
Register softmax_backward_registered{kernels::softmax_backward, Device::Type::cpu, softmax_backward_cpu};
Register log_softmax_backward_registered{kernels::log_softmax_backward, Device::Type::cpu, log_softmax_backward_cpu};

}  // namespace
}  // namespace strata
