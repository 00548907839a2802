#include "tensor/kernels/cross_entropy.h"

#include "tensor/kernels/row_math.h"
#include "tensor/parallel.h"

namespace strata {

namespace {

constexpr int64_t kGrain = 1 << 14;

void cross_entropy_cpu(const Tensor& x, const Tensor& t, int64_t ignore_index, const Tensor& nll,
                       const Tensor& statistics) {
  int64_t N = x.size(0), V = x.size(1);
  const int64_t* targets = t.data<int64_t>();
  with_float(x.dtype(), "cross_entropy", [&]<class T>() {
    using A = compute_t<T>;
    const T* logits = x.data<T>();
    A *losses = nll.mutable_data<A>(), *kept = statistics.mutable_data<A>();
    parallel_for(N, kGrain / (V + 1), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        losses[r] = 0;
        if (targets[r] == ignore_index) continue;
        const T* row = logits + r * V;
        auto [top, log_sum] = rows::log_sum_exp(row, V);
        kept[2 * r] = top;
        kept[2 * r + 1] = log_sum;
        losses[r] = log_sum + (top - convert<A>(row[targets[r]]));
      }
    });
  });
}

void cross_entropy_backward_cpu(const Tensor& x, const Tensor& t, int64_t ignore_index, const Tensor& statistics,
                                const Tensor& dy, double scale, const Tensor& dx) {
  int64_t N = x.size(0), V = x.size(1);
  const int64_t* targets = t.data<int64_t>();
  with_float(x.dtype(), "cross_entropy_backward", [&]<class T>() {
    using A = compute_t<T>;
    const T* logits = x.data<T>();
    const A* kept = statistics.data<A>();
    T* gradients = dx.mutable_data<T>();
    A g = *dy.data<A>() * static_cast<A>(scale);
    parallel_for(N, kGrain / (V + 1), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = logits + r * V;
        T* out = gradients + r * V;
        if (targets[r] == ignore_index) {
          std::fill(out, out + V, convert<T>(A(0)));
          continue;
        }
        A top = kept[2 * r], log_sum = kept[2 * r + 1];
        auto probability = [&](A logit) { return math::exp((logit - top) - log_sum); };
        A at_target = (probability(convert<A>(row[targets[r]])) - A(1)) * g;
#pragma omp simd
        for (int64_t j = 0; j < V; ++j) out[j] = convert<T>(probability(convert<A>(row[j])) * g);
        out[targets[r]] = convert<T>(at_target);
      }
    });
  });
}

Register cross_entropy_registered{kernels::cross_entropy, Device::Type::cpu, cross_entropy_cpu};
Register cross_entropy_backward_registered{kernels::cross_entropy_backward, Device::Type::cpu,
                                           cross_entropy_backward_cpu};

}  // namespace
}  // namespace strata
