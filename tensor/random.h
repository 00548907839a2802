// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
// Element i of a draw depends on (seed, counter + i) alone: the same stream on CPU, emulator and GPU.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tensor/tensor.h"

namespace strata {

using Philox4 = std::array<uint32_t, 4>;

/// Ten rounds of Philox4x32 on `counter` with `key`.
STRATA_HD inline Philox4 philox4x32(Philox4 counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The four words of block `index` of stream `seed`.
STRATA_HD inline Philox4 philox_block(uint64_t seed, uint64_t index) {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                    static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

/// 24 bits -> [0, 1).
STRATA_HD inline float uniform_from_word(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// A position in a stream: two integers are the whole state.
struct Generator {
  uint64_t seed = 0;
  uint64_t next = 0;  // next unused block of four words

  explicit Generator(uint64_t s = 0) : seed(s) {}
  /// Reserves ceil(count / 4) blocks and returns the first.
  uint64_t take(int64_t count) {
    uint64_t first = next;
    next += static_cast<uint64_t>((count + 3) / 4);
    return first;
  }
  float uniform() { return uniform_from_word(philox_block(seed, take(1))[0]); }
  friend bool operator==(const Generator&, const Generator&) = default;
};

/// The generator ops use unless told otherwise (one per thread).
Generator& default_generator();
void manual_seed(uint64_t seed);
/// An independent stream of `generator`'s seed for a name: initial weights do not depend on construction order.
uint64_t derive_seed(uint64_t seed, std::string_view name);

/// Fills with U[low, high) / N(mean, std) (Box-Muller on consecutive words). Float dtypes; any strides.
void uniform_(const Tensor& t, double low, double high, Generator& generator);
void normal_(const Tensor& t, double mean, double std, Generator& generator);
Tensor rand(const Dims& shape, Generator& generator = default_generator());
Tensor randn(const Dims& shape, Generator& generator = default_generator());

}  // namespace strata
