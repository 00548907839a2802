// Against the C library's double functions, over floats spread evenly over all bit patterns: every sign, exponent,
// subnormals, infinities and NaN.
#include "tensor/kernels/fast_math.h"

#include <gtest/gtest.h>

#include <functional>

namespace strata {
namespace {

/// Greatest error in units in the last place of the exact result rounded to float.
double worst_ulp(float (*f)(float), double (*exact)(double)) {
  double worst = 0;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 1009) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(u));
    double expected = exact(static_cast<double>(x));
    float rounded = static_cast<float>(expected), got = f(x);
    if (got == rounded || (std::isnan(got) && std::isnan(rounded))) continue;
    if (!std::isfinite(rounded) || !std::isfinite(got)) {
      ADD_FAILURE() << "f(" << x << ") = " << got << ", expected " << rounded;
      return HUGE_VAL;
    }
    double unit = std::max(std::ldexp(1.0, std::ilogb(rounded == 0 ? 1e-45f : rounded) - 23), 0x1p-149);
    worst = std::max(worst, std::abs(static_cast<double>(got) - expected) / unit);
  }
  return worst;
}

TEST(FastMath, Exp) {
  EXPECT_LT(worst_ulp(math::exp, [](double x) { return std::exp(x); }), 1.0);
}
TEST(FastMath, Log) {
  EXPECT_LT(worst_ulp(math::log, [](double x) { return std::log(x); }), 0.8);
}
TEST(FastMath, Tanh) {
  EXPECT_LT(worst_ulp(math::tanh, [](double x) { return std::tanh(x); }), 1.3);
}
TEST(FastMath, Erf) {
  EXPECT_LT(worst_ulp(math::erf, [](double x) { return std::erf(x); }), 1.3);
}

TEST(FastMath, ExpAtItsEdges) {
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::exp(-INFINITY), 0.0f);
  EXPECT_EQ(math::exp(INFINITY), INFINITY);
  EXPECT_EQ(math::exp(88.72284f), INFINITY);
  EXPECT_NEAR(math::exp(88.72283f), 3.4028e38f, 2e34f);
  EXPECT_GT(math::exp(-103.97f), 0.0f);  // the smallest subnormal
  EXPECT_EQ(math::exp(-103.98f), 0.0f);
}

}  // namespace
}  // namespace strata
