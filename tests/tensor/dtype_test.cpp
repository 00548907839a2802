#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strata {
namespace {

/// The value of a half by its definition.
double half_value(uint32_t bits) {
  double sign = bits >> 15 ? -1 : 1;
  int exponent = static_cast<int>(bits >> 10 & 31);
  double mantissa = bits & 1023;
  if (exponent == 31) return mantissa != 0 ? double{NAN} : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

Half half_from_bits(uint32_t bits) {
  Half h;
  h.bits = static_cast<uint16_t>(bits);
  return h;
}

BFloat16 bfloat_from_bits(uint32_t bits) {
  BFloat16 b;
  b.bits = static_cast<uint16_t>(bits);
  return b;
}

TEST(DType, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = static_cast<float>(half_from_bits(bits));
    double expected = half_value(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(Half(value).bits, bits);
  }
}

// Between two neighbours: below the middle down, above up, the middle to the even one.
TEST(DType, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    double low = half_value(bits), high = half_value(bits + 1);
    auto middle = static_cast<float>((low + high) / 2);  // exact in float
    EXPECT_EQ(Half(middle).bits, bits & 1 ? bits + 1 : bits);
    EXPECT_EQ(Half(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(Half(std::nextafter(middle, 1e9f)).bits, bits + 1);
    ASSERT_EQ(Half(-middle).bits, (bits & 1 ? bits + 1 : bits) | 0x8000u);
  }
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);  // the greatest
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);    // rounds to infinity
  EXPECT_EQ(Half(1e30f).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
}

TEST(DType, EveryBFloat16ComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = static_cast<float>(bfloat_from_bits(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(static_cast<float>(BFloat16(value)))) << bits;
    else
      ASSERT_EQ(BFloat16(value).bits, bits);
  }
}

TEST(DType, BFloat16RoundsTiesToEven) {
  auto from = [](uint32_t bits) { return BFloat16(std::bit_cast<float>(bits)).bits; };
  EXPECT_EQ(from(0x3f808000), 0x3f80);  // tie, even below
  EXPECT_EQ(from(0x3f818000), 0x3f82);  // tie, even above
  EXPECT_EQ(from(0x3f807fff), 0x3f80);
  EXPECT_EQ(from(0x3f808001), 0x3f81);
  EXPECT_EQ(from(0x7f7fffff), 0x7f80);  // the greatest float rounds to infinity
  EXPECT_EQ(from(0x7f800001), 0x7fc0);  // a NaN whose upper bits are those of infinity stays NaN
  EXPECT_EQ(from(0x00008000), 0x0000);  // half of the smallest subnormal
  EXPECT_EQ(from(0x80008001), 0x8001);
}

TEST(DType, Conversions) {
  EXPECT_EQ(convert<int32_t>(Half(-2.5f)), -2);
  EXPECT_EQ(convert<bool>(Half(0.0f)), false);
  EXPECT_EQ(convert<bool>(-3.0), true);
  EXPECT_EQ(static_cast<float>(convert<BFloat16>(int64_t{300})), 300.0f);
  EXPECT_EQ(convert<double>(true), 1.0);
}

}  // namespace
}  // namespace strata
