#include "autograd/ops/softmax.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/reduce.h"
#include "tensor/random.h"
#include "tests/error_of.h"
#include "tests/ops/op_case.h"
#include "tests/reference/softmax.h"

namespace strata {
namespace {

using reference::Arrays;

OpCase along(const std::string& name, Tensor (*op)(const Tensor&, int64_t),
             reference::Array (*expected)(const reference::Array&, int), int axis) {
  return {.name = name + "_axis_" + std::to_string(axis),
          .inputs = {floating(-3, 3)},
          .shapes = {{{3, 4, 5}}, {{2, 1, 1}}, {{1, 1, 7}}, {{0, 2, 3}}, {{2, 3, 0}}},
          .op = [op, axis](const std::vector<Tensor>& x) { return op(x[0], axis - 3); },
          .reference = [expected, axis](const Arrays& x) { return expected(x[0], axis); },
          .large = {{60, 31, 47}},
          .accumulation = 60};
}

std::vector<OpCase> rows() {
  std::vector<OpCase> all;
  for (int axis = 0; axis < 3; ++axis) {
    all.push_back(along("softmax", softmax, reference::softmax, axis));
    all.push_back(along("log_softmax", log_softmax, reference::log_softmax, axis));
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Softmax, OpCaseTest, testing::ValuesIn(rows()), op_case_name);

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Softmax, LargeLogitsDoNotOverflow) {
  Tensor x = from_values<float>({1000, 1001, 1002, -1000, -999, -998}, {2, 3});
  std::vector<float> y = to_vector<float>(softmax(x)), log_y = to_vector<float>(log_softmax(x));
  for (size_t i = 0; i < 6; ++i) {
    double expected = std::exp(static_cast<double>(i % 3)) / (1 + std::exp(1.0) + std::exp(2.0));
    EXPECT_NEAR(y[i], expected, 1e-7);
    EXPECT_NEAR(log_y[i], std::log(expected), 1e-6);
  }
}

TEST(Softmax, MaskedEntriesGetExactlyZero) {
  Tensor x = from_values<float>({1, -kInf, 1, -kInf}, {4});
  EXPECT_EQ(to_vector<float>(softmax(x)), (std::vector<float>{0.5f, 0, 0.5f, 0}));
  std::vector<float> log_y = to_vector<float>(log_softmax(x));
  EXPECT_FLOAT_EQ(log_y[0], -0.693147181f);
  EXPECT_EQ(log_y[1], -kInf);
}

TEST(Softmax, NothingButMaskOrNanIsNan) {
  for (float v : to_vector<float>(softmax(full({3}, -kInf)))) EXPECT_TRUE(std::isnan(v));
  for (float v : to_vector<float>(softmax(from_values<float>({1, NAN, 2}, {3})))) EXPECT_TRUE(std::isnan(v));
}

// 50,000 classes: sums keep their digits.
TEST(Softmax, LongRowsSumToOne) {
  Generator generator(3);
  std::vector<float> y = to_vector<float>(softmax(randn({2, 50000}, generator)));
  for (int row = 0; row < 2; ++row) {
    double total = 0;
    for (int i = 0; i < 50000; ++i) total += static_cast<double>(y[static_cast<size_t>(row * 50000 + i)]);
    EXPECT_NEAR(total, 1, 2e-7);
  }
}

TEST(Softmax, Errors) {
  EXPECT_EQ(error_of([] { softmax(ones({2, 3}), 2); }), "softmax: axis must be in [-2, 2), got 2");
  EXPECT_EQ(error_of([] { softmax(ones({2, 3}, {DType::i32})); }), "softmax: expected a floating dtype, got i32");
}

}  // namespace
}  // namespace strata
