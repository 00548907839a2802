#include "autograd/ops/pointwise.h"

#include <gmock/gmock.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/reduce.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

const std::vector<std::vector<Dims>> kUnaryShapes = {{{3, 5}}, {{}}, {{1}}, {{0, 4}}, {{2, 1, 3}}};
const std::vector<std::vector<Dims>> kBinaryShapes = {{{3, 4}, {3, 4}},    {{3, 4}, {4}}, {{3, 1}, {1, 4}},
                                                      {{2, 1, 2}, {3, 1}}, {{}, {2, 2}},  {{1}, {1}},
                                                      {{0, 3}, {1, 3}},    {{2, 0}, {}}};
const Dims kLarge = {67, 517};

template <class F>
OpCase unary(const std::string& name, Tensor (*op)(const Tensor&), F value, Input input = floating()) {
  return {.name = name,
          .inputs = {std::move(input)},
          .shapes = kUnaryShapes,
          .op = [op](const std::vector<Tensor>& x) { return op(x[0]); },
          .reference = [value](const Arrays& x) { return reference::map(x[0], value); },
          .large = {kLarge}};
}

template <class F>
OpCase binary(const std::string& name, Tensor (*op)(const Tensor&, const Tensor&), F value, Input a = floating(),
              Input b = floating()) {
  return {.name = name,
          .inputs = {std::move(a), std::move(b)},
          .shapes = kBinaryShapes,
          .op = [op](const std::vector<Tensor>& x) { return op(x[0], x[1]); },
          .reference = [value](const Arrays& x) { return reference::map(x[0], x[1], value); },
          .large = {kLarge, {kLarge[1]}},
          .accumulation = 67};  // the second gradient sums 67 rows
}

template <class F>
OpCase comparison(const std::string& name, Tensor (*op)(const Tensor&, const Tensor&), F value) {
  OpCase row = binary(name, op, value);
  row.result = DType::boolean;
  row.differentiable = false;
  return row;
}

double phi(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
}
double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

std::vector<OpCase> unary_rows() {
  std::vector<OpCase> rows = {
      unary("neg", neg, [](double x) { return -x; }),
      unary(
          "abs", abs, [](double x) { return std::abs(x); }, floating(-2, 2, {0})),
      unary("exp", exp, [](double x) { return std::exp(x); }),
      unary(
          "log", log, [](double x) { return std::log(x); }, floating(0.3, 4)),
      unary(
          "sqrt", sqrt, [](double x) { return std::sqrt(x); }, floating(0.3, 4)),
      unary(
          "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, floating(0.3, 4)),
      unary("sin", sin, [](double x) { return std::sin(x); }),
      unary("cos", cos, [](double x) { return std::cos(x); }),
      unary("erf", erf, [](double x) { return std::erf(x); }),
      unary("tanh", tanh, [](double x) { return std::tanh(x); }),
      unary("sigmoid", sigmoid, sigmoid_of),
      unary(
          "relu", relu, [](double x) { return x > 0 ? x : 0; }, floating(-2, 2, {0})),
      unary("silu", silu, [](double x) { return x * sigmoid_of(x); }),
      unary(
          "gelu", [](const Tensor& x) { return gelu(x); }, [](double x) { return x * phi(x); }),
      unary(
          "gelu_tanh", [](const Tensor& x) { return gelu(x, true); },
          [](double x) {
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
          }),
      unary(
          "add_number", [](const Tensor& x) { return x + 1.5; }, [](double x) { return x + 1.5; }),
      unary(
          "subtract_number", [](const Tensor& x) { return x - 1.5; }, [](double x) { return x - 1.5; }),
      unary(
          "number_minus", [](const Tensor& x) { return 1.0 - x; }, [](double x) { return 1 - x; }),
      unary(
          "mul_number", [](const Tensor& x) { return x * -2.5; }, [](double x) { return x * -2.5; }),
      unary(
          "square", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }),
      unary(
          "pow_third", [](const Tensor& x) { return pow(x, 1.0 / 3); }, [](double x) { return std::cbrt(x); },
          floating(0.3, 4)),
      unary(
          "pow_zero", [](const Tensor& x) { return pow(x, 0); }, [](double) { return 1; }),
  };
  for (OpCase& row : rows)
    if (row.name == "number_minus") row.roundings = 2;
  return rows;
}

std::vector<OpCase> binary_rows() {
  std::vector<OpCase> rows = {
      binary("add", add, [](double a, double b) { return a + b; }),
      binary("sub", sub, [](double a, double b) { return a - b; }),
      binary("mul", mul, [](double a, double b) { return a * b; }),
      binary(
          "div", div, [](double a, double b) { return a / b; }, floating(), floating(0.5, 3)),
      binary("maximum", maximum, [](double a, double b) { return std::max(a, b); }),
      binary("minimum", minimum, [](double a, double b) { return std::min(a, b); }),
  };
  OpCase glu = binary("swiglu", swiglu, [](double g, double u) { return g * sigmoid_of(g) * u; });
  glu.shapes = {{{3, 4}, {3, 4}}, {{}, {}}, {{0, 3}, {0, 3}}, {{1, 1}, {1, 1}}};
  glu.large = {kLarge, kLarge};
  rows.push_back(glu);
  rows.push_back(comparison("equal", equal, [](double a, double b) { return a == b ? 1.0 : 0.0; }));
  rows.push_back(comparison("less", less, [](double a, double b) { return a < b ? 1.0 : 0.0; }));
  rows.push_back(comparison("greater", greater, [](double a, double b) { return a > b ? 1.0 : 0.0; }));
  rows.push_back({.name = "where",
                  .inputs = {booleans(), floating(), floating()},
                  .shapes = {{{3, 4}, {3, 4}, {3, 4}},
                             {{3, 1}, {4}, {3, 4}},
                             {{2, 3, 1}, {1, 2}, {}},
                             {{}, {}, {}},
                             {{0, 2}, {2}, {1, 2}}},
                  .op = [](const std::vector<Tensor>& x) { return where(x[0], x[1], x[2]); },
                  .reference =
                      [](const Arrays& x) {
                        Array first = reference::map(x[0], x[1], [](double c, double a) { return c * a; });
                        Array second = reference::map(x[0], x[2], [](double c, double b) { return (1 - c) * b; });
                        return reference::map(first, second, [](double a, double b) { return a + b; });
                      },
                  .large = {kLarge, kLarge, kLarge}});
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Unary, OpCaseTest, testing::ValuesIn(unary_rows()), op_case_name);
INSTANTIATE_TEST_SUITE_P(Binary, OpCaseTest, testing::ValuesIn(binary_rows()), op_case_name);

TEST(Pointwise, ErrorsNameWhatCame) {
  Tensor f = zeros({2, 3}), i = zeros({2, 3}, {DType::i64}), b = zeros({2, 3}, {DType::boolean});
  EXPECT_EQ(error_text([&] { add(f, i); }), "add: operands must have one dtype, got f32 and i64");
  EXPECT_EQ(error_text([&] { mul(f, zeros({4})); }), "mul: shapes do not broadcast, got [2, 3] and [4]");
  EXPECT_EQ(error_text([&] { div(i, i); }), "div: expected a floating dtype, got i64");
  EXPECT_EQ(error_text([&] { exp(i); }), "exp: expected a floating dtype, got i64");
  EXPECT_EQ(error_text([&] { add(b, b); }), "add: expected numbers, got bool");
  EXPECT_EQ(error_text([&] { mul(i, 0.5); }), "mul: a tensor of i64 needs a whole number, got 0.5");
  EXPECT_EQ(error_text([&] { where(f, f, f); }), "where: condition must be bool, got f32");
  EXPECT_EQ(error_text([&] { swiglu(f, zeros({3})); }), "swiglu: gate and up must have one shape, got [2, 3] and [3]");
}

TEST(Pointwise, IntegersWrapAround) {
  Tensor a = from_values<uint8_t>({250, 3}, {2}), b = from_values<uint8_t>({10, 5}, {2});
  EXPECT_EQ(to_vector<int64_t>(a + b), (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(to_vector<int64_t>(b - a), (std::vector<int64_t>{16, 2}));
  Tensor large = from_values<int64_t>({INT64_MAX, INT64_MIN}, {2}), one = from_values<int64_t>({1}, {1});
  EXPECT_EQ(to_vector<int64_t>(large + one), (std::vector<int64_t>{INT64_MIN, INT64_MIN + 1}));
  EXPECT_EQ(to_vector<int64_t>(from_values<int32_t>({7, -9}, {2}) * 3.0), (std::vector<int64_t>{21, -27}));
  EXPECT_EQ(to_vector<int64_t>(maximum(from_values<int8_t>({-5, 4}, {2}), from_values<int8_t>({2, 3}, {2}))),
            (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(to_vector<int64_t>(equal(from_values<int32_t>({7, -9}, {2}), from_values<int32_t>({7, 9}, {2}))),
            (std::vector<int64_t>{1, 0}));
}

TEST(Pointwise, NanAndInfinity) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Tensor x = clone_data(from_values<double>({NAN, INFINITY, -INFINITY, 0.0}, {4}), dtype);
    auto values = [](const Tensor& t) { return to_vector<double>(t); };
    using testing::ElementsAre, testing::IsNan;
    EXPECT_THAT(values(exp(x)), ElementsAre(IsNan(), INFINITY, 0, 1)) << dtype_name(dtype);
    EXPECT_THAT(values(log(x)), ElementsAre(IsNan(), INFINITY, IsNan(), -INFINITY));
    EXPECT_THAT(values(tanh(x)), ElementsAre(IsNan(), 1, -1, 0));
    EXPECT_THAT(values(erf(x)), ElementsAre(IsNan(), 1, -1, 0));
    EXPECT_THAT(values(sigmoid(x)), ElementsAre(IsNan(), 1, 0, 0.5));
    EXPECT_THAT(values(relu(x)), ElementsAre(IsNan(), INFINITY, 0, 0));
    Tensor zero = zeros({}, {dtype});
    EXPECT_THAT(values(maximum(x, zero)), ElementsAre(IsNan(), INFINITY, 0, 0));
    EXPECT_THAT(values(maximum(zero, x)), ElementsAre(IsNan(), INFINITY, 0, 0));
    EXPECT_THAT(values(minimum(zero, x)), ElementsAre(IsNan(), 0, -INFINITY, 0));
    EXPECT_THAT(values(equal(x, x)), ElementsAre(0, 1, 1, 1));
  }
}

TEST(Pointwise, EqualOperandsShareTheGradientOfMaximumOnce) {
  Tensor a = from_values({1.0, 2.0}, {2}), b = from_values({1.0, 3.0}, {2});
  set_requires_grad(a);
  set_requires_grad(b);
  backward(sum(maximum(a, b)));
  EXPECT_EQ(to_vector<double>(grad(a)), (std::vector<double>{1, 0}));
  EXPECT_EQ(to_vector<double>(grad(b)), (std::vector<double>{0, 1}));
}

TEST(Pointwise, InPlace) {
  Tensor a = from_values({1.0, 2.0, 3.0, 4.0}, {2, 2});
  uint32_t version = a.storage()->version();
  add_(a, from_values({10.0, 20.0}, {2}));
  EXPECT_EQ(to_vector<double>(a), (std::vector<double>{11, 22, 13, 24}));
  EXPECT_GT(a.storage()->version(), version);
  mul_(transpose(a), 2);
  EXPECT_EQ(to_vector<double>(a), (std::vector<double>{22, 44, 26, 48}));
  add_(a, a);
  EXPECT_EQ(to_vector<double>(a), (std::vector<double>{44, 88, 52, 96}));
  EXPECT_EQ(error_text([&] {
              add_(a, zeros({3, 2, 2}, {DType::f64}));
            }),
            "add_: b must broadcast to a's shape [2, 2], got [3, 2, 2]");
}

TEST(Pointwise, InPlaceRefusesWhatWantsGradients) {
  Tensor a = ones({2});
  set_requires_grad(a);
  EXPECT_EQ(error_text([&] { mul_(a, 2); }),
            "mul_: a tensor that wants gradients cannot be written in place; use NoGrad, got shape [2]");
  NoGrad off;
  mul_(a, 2);
  EXPECT_EQ(to_vector<double>(a), (std::vector<double>{2, 2}));
}

TEST(Pointwise, BackwardNoticesAnOperandThatWasWrittenSince) {
  Tensor a = ones({2}), b = ones({2});
  set_requires_grad(a);
  Tensor y = sum(a * b);
  mul_(b, 3);
  EXPECT_THAT(error_text([&] { backward(y); }), testing::HasSubstr("mul: a tensor needed for the gradient"));
}

}  // namespace
}  // namespace strata
