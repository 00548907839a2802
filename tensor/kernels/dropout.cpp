#include "tensor/kernels/dropout.h"

#include "tensor/parallel.h"
#include "tensor/random.h"

namespace strata {
namespace {

constexpr int64_t kBlocks = 16;  // Philox blocks drawn together: independent lanes that the compiler vectorises
constexpr int64_t kWords = 4 * kBlocks;

/// The words of blocks [index, index + kBlocks), in order.
void draw_words(uint64_t seed, uint64_t index, uint32_t* words) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (uint64_t k = 0; k < kBlocks; ++k) {
    c0[k] = static_cast<uint32_t>(index + k);
    c1[k] = static_cast<uint32_t>((index + k) >> 32);
    c2[k] = c3[k] = 0;
  }
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t k = 0; k < kBlocks; ++k) {
      uint64_t p0 = uint64_t{0xD2511F53u} * c0[k], p1 = uint64_t{0xCD9E8D57u} * c2[k];
      c0[k] = static_cast<uint32_t>(p1 >> 32) ^ c1[k] ^ key0;
      c1[k] = static_cast<uint32_t>(p1);
      c2[k] = static_cast<uint32_t>(p0 >> 32) ^ c3[k] ^ key1;
      c3[k] = static_cast<uint32_t>(p0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int64_t k = 0; k < kBlocks; ++k) {
    words[4 * k] = c0[k];
    words[4 * k + 1] = c1[k];
    words[4 * k + 2] = c2[k];
    words[4 * k + 3] = c3[k];
  }
}

void dropout_cpu(const Tensor& x, const kernels::DropoutMask& mask, const Tensor& y) {
  with_float(x.dtype(), "dropout", [&]<class T>() {
    using C = compute_t<T>;
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    C scale = static_cast<C>(1 / (1 - mask.p));
    auto p = static_cast<float>(mask.p);
    int64_t n = x.numel(), groups = (n + kWords - 1) / kWords;
    parallel_for(groups, 4096 / kWords, [&](int64_t begin, int64_t end) {
      uint32_t words[kWords];
      for (int64_t g = begin; g < end; ++g) {
        draw_words(mask.seed, mask.first + static_cast<uint64_t>(g * kBlocks), words);
        const T* a = from + g * kWords;
        T* b = to + g * kWords;
        int64_t count = std::min(kWords, n - g * kWords);
        for (int64_t i = 0; i < count; ++i)
          b[i] = convert<T>(uniform_from_word(words[i]) >= p ? convert<C>(a[i]) * scale : C(0));
      }
    });
  });
}

Register registered{kernels::dropout, Device::Type::cpu, dropout_cpu};

}  // namespace
}  // namespace strata
