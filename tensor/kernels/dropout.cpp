#include "tensor/kernels/dropout.h"

#include "tensor/parallel.h"
#include "tensor/random.h"

namespace strata {
namespace {

void dropout_cpu(const Tensor& x, const kernels::DropoutMask& mask, const Tensor& y) {
  if (x.numel() == 0) return;
  with_float(x.dtype(), "dropout", [&]<class T>() {
    using C = compute_t<T>;
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    auto scale = static_cast<C>(1 / (1 - mask.p));
    auto p = static_cast<float>(mask.p);
    int64_t n = x.numel();
    parallel_for((n + 3) / 4, 2048, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        Philox4 words = philox_block(mask.seed, mask.first + static_cast<uint64_t>(block));
        for (int64_t i = 4 * block; i < std::min(n, 4 * block + 4); ++i) {
          bool keep = uniform_from_word(words[static_cast<size_t>(i % 4)]) >= p;
          to[i] = convert<T>(keep ? convert<C>(from[i]) * scale : C(0));
        }
      }
    });
  });
}

Register registered{kernels::dropout, Device::Type::cpu, dropout_cpu};

}  // namespace
}  // namespace strata
