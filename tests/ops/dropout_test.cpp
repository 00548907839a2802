#include "autograd/ops/dropout.h"

#include <gmock/gmock.h>

#include "autograd/autograd.h"
#include "autograd/ops/reduce.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

constexpr uint64_t kSeed = 2024;
constexpr uint64_t kFirstBlock = 7;

OpCase row(const std::string& name, double p) {
  return {.name = name,
          .inputs = {floating()},
          .shapes = {{{5, 7}}, {{}}, {{1}}, {{0, 3}}, {{3, 67}}},
          .op =
              [p](const std::vector<Tensor>& x) {
                Generator generator(kSeed);
                generator.next = kFirstBlock;
                return dropout(x[0], p, generator);
              },
          .reference =
              [p](const Arrays& x) {
                Array y(x[0].shape);
                for (int64_t i = 0; i < y.count(); ++i) {
                  uint32_t word =
                      philox_block(kSeed, kFirstBlock + static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
                  y[i] = word / 4294967296.0 < p ? 0 : x[0][i] / (1 - p);
                }
                return y;
              },
          .large = {{131, 517}}};
}

INSTANTIATE_TEST_SUITE_P(Dropout, OpCaseTest, testing::Values(row("tenth", 0.1), row("half", 0.5), row("most", 0.9)),
                         op_case_name);

TEST(Dropout, KeepsTheExpectedShareAndTheMean) {
  Generator generator(1);
  Tensor y = dropout(ones({1000, 1000}), 0.25, generator);
  int64_t zero_count = 0;
  for (float v : to_vector<float>(y)) zero_count += v == 0;
  EXPECT_NEAR(static_cast<double>(zero_count) / 1e6, 0.25, 4 * std::sqrt(0.25 * 0.75 / 1e6));
  EXPECT_NEAR(mean(y).item(), 1.0, 4 * std::sqrt(0.25 / 0.75 / 1e6));
}

TEST(Dropout, EveryCallTakesNewNumbers) {
  Generator generator(1);
  Tensor x = ones({100});
  Tensor a = dropout(x, 0.5, generator), b = dropout(x, 0.5, generator);
  EXPECT_NE(to_vector<float>(a), to_vector<float>(b));
  EXPECT_EQ(generator.next, 50u);
  manual_seed(3);
  std::vector<float> first = to_vector<float>(dropout(x, 0.5));
  manual_seed(3);
  EXPECT_EQ(to_vector<float>(dropout(x, 0.5)), first);
}

TEST(Dropout, ZeroProbabilityReturnsTheInput) {
  Generator generator(1);
  Tensor x = ones({3});
  EXPECT_TRUE(dropout(x, 0, generator).same_as(x));
  EXPECT_EQ(generator.next, 0u);
}

TEST(Dropout, DroppedNaNIsGone) {
  Generator generator(5);
  Tensor y = dropout(full({64}, NAN), 0.5, generator);
  EXPECT_THAT(to_vector<float>(y), testing::Contains(0.0f));
}

TEST(Dropout, ErrorsNameWhatCame) {
  EXPECT_EQ(error_text([] { dropout(ones({2}), 1); }), "dropout: p must be in [0, 1), got 1");
  EXPECT_EQ(error_text([] { dropout(ones({2}), -0.5); }), "dropout: p must be in [0, 1), got -0.5");
  EXPECT_EQ(error_text([] { dropout(zeros({2}, {DType::i64}), 0.5); }), "dropout: expected a floating dtype, got i64");
}

}  // namespace
}  // namespace strata
