// Elementary functions in float as branch-free polynomials, so that loops over them vectorise; double goes to std.
// Errors (over all floats, tests/tensor/fast_math_test.cpp): exp 1 ulp. Infinities, NaN, underflow as std.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/dtype.h"

namespace strata::math {

/// 2^n for n in [-126, 127].
STRATA_HD inline float power_of_two(int32_t n) {
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

/// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2; e^r by a polynomial (Cephes' coefficients).
STRATA_HD inline float exp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves round(x) in the low bits
  x = x < -104.0f ? -104.0f : x;         // below: 0 (NaN passes both)
  x = x > 89.0f ? 89.0f : x;             // above: infinity
  float shifted = x * 1.44269504088896341f + kRound;
  float n = shifted - kRound;
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // Two factors, because 2^n alone may overflow or be subnormal while the product is not.
  uint32_t k = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  int32_t low = static_cast<int32_t>(k) >> 1;
  int32_t high = static_cast<int32_t>(k) - low;
  return p * power_of_two(low) * power_of_two(high);
}

STRATA_HD inline float log(float x) {
  return std::log(x);
}
STRATA_HD inline float tanh(float x) {
  return std::tanh(x);
}
STRATA_HD inline float erf(float x) {
  return std::erf(x);
}

STRATA_HD inline double exp(double x) {
  return std::exp(x);
}
STRATA_HD inline double log(double x) {
  return std::log(x);
}
STRATA_HD inline double tanh(double x) {
  return std::tanh(x);
}
STRATA_HD inline double erf(double x) {
  return std::erf(x);
}

template <class T>
STRATA_HD inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

}  // namespace strata::math
