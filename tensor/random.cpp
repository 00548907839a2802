#include "tensor/random.h"

#include <cmath>
#include <numbers>

#include "tensor/create.h"

namespace strata {

Generator& default_generator() {
  thread_local Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) {
  default_generator() = Generator(seed);
}

uint64_t derive_seed(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a of the name, then one Philox block to mix it with the seed
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  Philox4 block = philox_block(seed, hash);
  return static_cast<uint64_t>(block[1]) << 32 | block[0];
}

namespace {

// Draws element i as value(word pair of its block): order is row-major whatever the strides are.
template <class F>
void fill_random(const Tensor& t, Generator& generator, F&& four_values) {
  uint64_t first = generator.take(t.numel());
  bool direct = t.is_contiguous() && t.device().is_cpu();
  Tensor y = direct ? t : empty(t.shape(), {t.dtype(), Device::cpu()});
  with_float(t.dtype(), "random", [&]<class T>() {
    T* p = y.numel() ? y.mutable_data<T>() : nullptr;
    for (int64_t i = 0; i < y.numel(); i += 4) {
      std::array<double, 4> v = four_values(philox_block(generator.seed, first + static_cast<uint64_t>(i / 4)));
      for (int64_t k = 0; k < 4 && i + k < y.numel(); ++k) p[i + k] = convert<T>(v[static_cast<size_t>(k)]);
    }
  });
  if (!direct) copy_(t, y);
}

}  // namespace

void uniform_(const Tensor& t, double low, double high, Generator& generator) {
  fill_random(t, generator, [&](const Philox4& w) {
    std::array<double, 4> v;
    for (size_t k = 0; k < 4; ++k) v[k] = low + (high - low) * static_cast<double>(uniform_from_word(w[k]));
    return v;
  });
}

void normal_(const Tensor& t, double mean, double std, Generator& generator) {
  fill_random(t, generator, [&](const Philox4& w) {
    std::array<double, 4> v;
    for (size_t k = 0; k < 4; k += 2) {  // Box-Muller; 1 - u lies in (0, 1]
      double radius = std * std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(uniform_from_word(w[k]))));
      double angle = 2.0 * std::numbers::pi * static_cast<double>(uniform_from_word(w[k + 1]));
      v[k] = mean + radius * std::cos(angle);
      v[k + 1] = mean + radius * std::sin(angle);
    }
    return v;
  });
}

Tensor rand(const Dims& shape, Generator& generator) {
  Tensor t = empty(shape);
  uniform_(t, 0, 1, generator);
  return t;
}

Tensor randn(const Dims& shape, Generator& generator) {
  Tensor t = empty(shape);
  normal_(t, 0, 1, generator);
  return t;
}

}  // namespace strata
