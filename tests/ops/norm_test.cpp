#include "autograd/ops/norm.h"

#include "autograd/autograd.h"
#include "tensor/random.h"
#include "tests/error_of.h"
#include "tests/ops/op_case.h"
#include "tests/reference/norm.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

constexpr double kEps = 1e-3;

std::vector<OpCase> rows() {
  OpCase rms{.name = "rms_norm",
             .inputs = {floating(), floating(0.5, 1.5)},
             .shapes = {{{2, 3, 6}, {6}}, {{6}, {6}}, {{3, 1}, {1}}, {{0, 4}, {4}}, {{1, 2}, {2}}},
             .op = [](const std::vector<Tensor>& x) { return rms_norm(x[0], x[1], kEps); },
             .reference = [](const Arrays& x) { return reference::rms_norm(x[0], x[1], kEps); },
             .large = {{301, 517}, {517}},
             .accumulation = 517};
  OpCase gemma = rms;
  gemma.name = "rms_norm_offset";
  gemma.op = [](const std::vector<Tensor>& x) { return rms_norm(x[0], x[1], kEps, 1); };
  gemma.reference = [](const Arrays& x) { return reference::rms_norm(x[0], x[1], kEps, 1); };

  OpCase layer{.name = "layer_norm",
               .inputs = {floating(), floating(0.5, 1.5), floating()},
               .shapes = {{{2, 3, 6}, {6}, {6}}, {{6}, {6}, {6}}, {{3, 1}, {1}, {1}}, {{0, 4}, {4}, {4}}},
               .op = [](const std::vector<Tensor>& x) { return layer_norm(x[0], x[1], x[2], kEps); },
               .reference = [](const Arrays& x) { return reference::layer_norm(x[0], x[1], x[2], kEps); },
               .large = {{301, 517}, {517}, {517}},
               .accumulation = 517};
  OpCase plain = rms;  // without parameters
  plain.name = "layer_norm_plain";
  plain.inputs.pop_back();
  plain.large.pop_back();
  for (auto& shapes : plain.shapes) shapes.pop_back();
  plain.op = [](const std::vector<Tensor>& x) { return layer_norm(x[0], {}, {}, kEps); };
  plain.reference = [](const Arrays& x) { return reference::normalize(x[0], kEps, true); };
  return {rms, gemma, layer, plain};
}
INSTANTIATE_TEST_SUITE_P(Norm, OpCaseTest, testing::ValuesIn(rows()), op_case_name);

/// Distance to the next bf16 number at |value|.
double bf16_ulp(double value) {
  return std::exp2(std::floor(std::log2(std::abs(value))) - 7);
}

// One outlier of 300 among 4096 values of about 1: a mean square summed in bf16 would lose the rest.
TEST(RmsNorm, OneOutlierInBf16) {
  Generator generator(11);
  Tensor x = randn({1, 4096}, generator), w = randn({4096}, generator);
  x.mutable_data<float>()[1234] = 300;
  Tensor x16 = clone_data(x, DType::bf16), w16 = clone_data(w, DType::bf16);
  for (double offset : {0.0, 1.0}) {
    Array expected = reference::rms_norm(to_array(x16), to_array(w16), 1e-6, offset);
    std::vector<double> y = to_vector<double>(rms_norm(x16, w16, 1e-6, offset));
    for (int64_t i = 0; i < expected.count(); ++i)
      ASSERT_NEAR(y[static_cast<size_t>(i)], expected[i], bf16_ulp(expected[i])) << "element " << i;
  }
}

// f32 parameters under 16-bit activations: y has x's dtype, each gradient its input's.
TEST(RmsNorm, WideParameters) {
  Tensor x = set_requires_grad(clone_data(ones({2, 8}), DType::bf16)), w = set_requires_grad(ones({8}));
  Tensor y = rms_norm(x, w);
  EXPECT_EQ(y.dtype(), DType::bf16);
  std::vector<Tensor> g = gradients({y}, {x, w}, {clone_data(ones({2, 8}), DType::bf16)});
  EXPECT_EQ(g[0].dtype(), DType::bf16);
  EXPECT_EQ(g[1].dtype(), DType::f32);
  for (float v : to_vector<float>(g[1])) EXPECT_NEAR(v, 2, 1e-4);  // two rows of xhat = 1
}

// The variance of numbers around 10,000 survives in f32.
TEST(LayerNorm, LargeMean) {
  Tensor x = from_values<float>({9999, 10000, 10001, 10002}, {1, 4});
  std::vector<float> y = to_vector<float>(layer_norm(x, {}, {}, 0));
  double expected[] = {-1.3416407865, -0.4472135955, 0.4472135955, 1.3416407865};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
}

TEST(Norm, Errors) {
  EXPECT_EQ(error_of([] { rms_norm(ones({2, 3}), ones({4})); }), "rms_norm: w must be [3], got [4]");
  EXPECT_EQ(error_of([] { layer_norm(ones({2, 3}), ones({3}), ones({2})); }), "layer_norm: b must be [3], got [2]");
  EXPECT_EQ(error_of([] {
              rms_norm(ones({2, 3}, {DType::i64}), ones({3}));
            }),
            "rms_norm: expected a floating tensor with at least one axis, got i64[2, 3]");
}

}  // namespace
}  // namespace strata
