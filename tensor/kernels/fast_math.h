// Elementary functions in float as branch-free polynomials, so that loops over them vectorise; double goes to std.
// Errors over all floats (tests/tensor/fast_math_test.cpp): exp 1 ulp, log 0.8, tanh and erf 1.3. Infinities, NaN and
// underflow as std. Files that use them are compiled with -ffp-contract=off (see mul_add).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/dtype.h"

namespace strata::math {

/// a b + c. Fused by hand where the hardware can: left to the compiler, the vectorised part of a loop and its last
/// elements may be fused differently, and then a result depends on where in the tensor its element lies.
STRATA_HD inline float mul_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__CUDA_ARCH__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

/// ((first x + second) x + ...) x + last: Horner's rule.
template <class... Rest>
STRATA_HD inline float polynomial(float x, float first, Rest... rest) {
  ((first = mul_add(first, x, rest)), ...);
  return first;
}

/// 2^n for n in [-126, 127].
STRATA_HD inline float power_of_two(int32_t n) {
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

/// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2; e^r by a polynomial (Cephes' coefficients).
STRATA_HD inline float exp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves round(x) in the low bits
  x = x < -104.0f ? -104.0f : x;         // below: 0 (NaN passes both)
  x = x > 89.0f ? 89.0f : x;             // above: infinity
  float shifted = mul_add(x, 1.44269504088896341f, kRound);
  float n = shifted - kRound;
  float r = mul_add(n, 2.12194440e-4f, mul_add(n, -0.693359375f, x));
  float p = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                       5.0000001201e-1f);
  p = mul_add(p, r * r, r) + 1.0f;
  // Two factors, because 2^n alone may overflow or be subnormal while the product is not.
  uint32_t k = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  int32_t low = static_cast<int32_t>(k) >> 1;
  int32_t high = static_cast<int32_t>(k) - low;
  return p * power_of_two(low) * power_of_two(high);
}

/// ln x = e ln 2 + ln(1 + f), 1 + f in [sqrt 1/2, sqrt 2) (Cephes' coefficients).
STRATA_HD inline float log(float x) {
  bool subnormal = x < 1.17549435e-38f;
  uint32_t u = std::bit_cast<uint32_t>(subnormal ? x * 8388608.0f : x);  // 2^23
  uint32_t above = u - 0x3f3504f3u;                                      // sqrt 1/2
  float e = static_cast<float>(static_cast<int32_t>(above) >> 23) - (subnormal ? 23.0f : 0.0f);
  float f = std::bit_cast<float>(u - (above & 0xff800000u)) - 1.0f;
  float p = polynomial(f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                       -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  float square = f * f;
  float small = mul_add(-0.5f, square, mul_add(e, -2.12194440e-4f, p * f * square));
  float y = mul_add(e, 0.693359375f, f + small);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  y = x < kInfinity ? y : x;  // infinity and NaN
  y = x == 0.0f ? -kInfinity : y;
  return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : y;
}

/// Below 0.625 an odd polynomial (least-maximum fit), above 1 - 2 / (e^2x + 1).
STRATA_HD inline float tanh(float x) {
  float a = std::abs(x), z = x * x;
  float p = polynomial(z, -5.7049873285e-3f, 2.0639088005e-2f, -5.3739715368e-2f, 1.3331441581e-1f, -3.3333280683e-1f);
  float low = mul_add(x, z * p, x);
  float high = std::copysign(1.0f - 2.0f / (exp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? low : high;
}

/// Below 1 an odd polynomial, above 1 - e^(-x q(x)) (least-maximum fits to erf x / x and -ln erfc(x) / x).
STRATA_HD inline float erf(float x) {
  float a = std::abs(x);
  float p = polynomial(x * x, 7.8538963862e-5f, -8.0102053471e-4f, 5.1883291453e-3f, -2.6853812858e-2f,
                       1.1283585429e-1f, -3.7612625957e-1f, 1.2837916613e-1f);
  float low = mul_add(x, p, x);
  float t = a < 4.0f ? a : 4.0f;  // 1 beyond
  float q = polynomial(t, -2.1064255270e-4f, 3.1869413797e-3f, -2.2798445076e-2f, 1.0511611402e-1f, 6.3583147526e-1f,
                       1.1284800768f);
  float high = std::copysign(a < 4.0f ? 1.0f - exp(-t * q) : 1.0f, x);
  return a < 1.0f ? low : (x == x ? high : x);
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
