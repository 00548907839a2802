#include "tensor/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensor/create.h"

namespace strata {
namespace {

// Known answers of Random123's kat_vectors, "philox4x32 10".
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0, 0), (Philox4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (Philox4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Philox4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, BlocksUseAllBitsOfSeedAndIndex) {
  EXPECT_EQ(philox_block(0, 0), (Philox4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_block(0x0000000700000009u, 0x0000000300000005u), philox4x32({5, 3, 0, 0}, 9, 7));
}

TEST(Random, UniformFromWordStaysBelowOne) {
  EXPECT_EQ(uniform_from_word(0), 0.0f);
  EXPECT_EQ(uniform_from_word(0xffffffff), 1.0f - 0x1p-24f);
}

TEST(Random, ElementsDependOnSeedAndPositionAlone) {
  Generator a(9), b(9);
  std::vector<float> whole = to_vector<float>(rand({4, 5}, a));
  b.next = 2;  // element 8 starts block 2
  std::vector<float> tail = to_vector<float>(rand({12}, b));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), whole.begin() + 8));
  EXPECT_EQ(a.next, 5u);
  Generator c(9);
  Tensor turned = alias(zeros({5, 4}), Layout{{4, 5}, {1, 4}, 0});
  uniform_(turned, 0, 1, c);
  EXPECT_EQ(to_vector<float>(turned), whole);  // row-major whatever the strides
}

TEST(Random, UniformMoments) {
  Generator g(4);
  Tensor t = empty({1'000'000}, {DType::f64});
  uniform_(t, -1, 3, g);
  std::vector<double> v = to_vector<double>(t);
  double sum = 0, squares = 0;
  for (double x : v) sum += x, squares += (x - 1) * (x - 1);
  EXPECT_NEAR(sum / 1e6, 1.0, 4 * 4 / std::sqrt(12.0) / 1e3);
  EXPECT_NEAR(squares / 1e6, 16.0 / 12, 0.005);
  EXPECT_GE(*std::min_element(v.begin(), v.end()), -1);
  EXPECT_LT(*std::max_element(v.begin(), v.end()), 3);
}

TEST(Random, NormalMomentsAndTails) {
  Generator g(5);
  Tensor t = empty({1'000'000}, {DType::f64});
  normal_(t, 2, 0.5, g);
  double n = 1e6, m1 = 0, m2 = 0, m3 = 0, m4 = 0, beyond = 0;
  for (double x : to_vector<double>(t)) {
    double z = (x - 2) / 0.5;
    m1 += z, m2 += z * z, m3 += z * z * z, m4 += z * z * z * z;
    beyond += std::abs(z) > 1.959964;
  }
  EXPECT_NEAR(m1 / n, 0, 4 * std::sqrt(1 / n));
  EXPECT_NEAR(m2 / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(m3 / n, 0, 4 * std::sqrt(15 / n));
  EXPECT_NEAR(m4 / n, 3, 4 * std::sqrt(96 / n));
  EXPECT_NEAR(beyond / n, 0.05, 4 * std::sqrt(0.05 * 0.95 / n));
}

TEST(Random, NamedStreamsDiffer) {
  EXPECT_EQ(derive_seed(1, "layers.0.weight"), derive_seed(1, "layers.0.weight"));
  EXPECT_NE(derive_seed(1, "layers.0.weight"), derive_seed(1, "layers.1.weight"));
  EXPECT_NE(derive_seed(1, "layers.0.weight"), derive_seed(2, "layers.0.weight"));
}

}  // namespace
}  // namespace strata
