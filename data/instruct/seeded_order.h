// Orders that depend on a seed and nothing else: the same on every machine, compiler and number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace strata::data {

/// splitmix64 (Steele, Lea, Flood 2014): the output for state x.
constexpr uint64_t splitmix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// 0..n-1 sorted by (splitmix64(seed + i), i).
inline std::vector<int64_t> seeded_order(int64_t n, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  auto key = [&](int64_t i) { return splitmix64(seed + static_cast<uint64_t>(i)); };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    uint64_t ka = key(a), kb = key(b);
    return ka != kb ? ka < kb : a < b;
  });
  return order;
}

}  // namespace strata::data
