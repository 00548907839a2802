#include "autograd/ops/reduce.h"

#include <gmock/gmock.h>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

/// Sum over the axes where `kept` is 1, delivered under the shape `result`.
Array sum_over(const Array& x, const Dims& kept, const Dims& result) {
  Array y(kept);
  for (int64_t i = 0; i < x.count(); ++i) {
    Dims index = x.index(i);
    for (int k = 0; k < index.size(); ++k) index[k] = kept[k] == 1 ? 0 : index[k];
    y.at(index) += x[i];
  }
  y.shape = result;
  return y;
}

struct Shapes {
  Dims kept, result;
};

Shapes reduce_shapes(const Dims& shape, const Dims& axes, bool keep_dims) {
  Shapes s{shape, {}};
  for (int k = 0; k < shape.size(); ++k) {
    bool reduced = axes.empty();
    for (int64_t axis : axes) reduced = reduced || (axis + shape.size()) % shape.size() == k;
    if (reduced) s.kept[k] = 1;
    if (!reduced || keep_dims) s.result.push_back(s.kept[k]);
  }
  return s;
}

OpCase sum_row(const std::string& name, const Dims& axes, bool keep_dims, std::vector<std::vector<Dims>> shapes,
               const Dims& large) {
  return {.name = name,
          .inputs = {floating()},
          .shapes = std::move(shapes),
          .op = [=](const std::vector<Tensor>& x) { return sum(x[0], axes, keep_dims); },
          .reference =
              [=](const Arrays& x) {
                Shapes s = reduce_shapes(x[0].shape, axes, keep_dims);
                return sum_over(x[0], s.kept, s.result);
              },
          .large = {large},
          .accumulation = 64};
}

OpCase mean_row(const std::string& name, const Dims& axes, bool keep_dims, std::vector<std::vector<Dims>> shapes) {
  OpCase row = sum_row(name, axes, keep_dims, std::move(shapes), {40, 1000});
  row.op = [=](const std::vector<Tensor>& x) { return mean(x[0], axes, keep_dims); };
  row.reference = [=](const Arrays& x) {
    Shapes s = reduce_shapes(x[0].shape, axes, keep_dims);
    Array y = sum_over(x[0], s.kept, s.result);
    double ratio = static_cast<double>(y.count()) / static_cast<double>(x[0].count());
    return reference::map(y, [&](double v) { return v * ratio; });
  };
  row.roundings = 3;  // of the sum, then of the mean
  return row;
}

OpCase sum_to_row(const std::string& name, const Dims& target, std::vector<std::vector<Dims>> shapes,
                  const Dims& large) {
  return {.name = name,
          .inputs = {floating()},
          .shapes = std::move(shapes),
          .op = [=](const std::vector<Tensor>& x) { return sum_to(x[0], target); },
          .reference =
              [=](const Arrays& x) {
                Dims kept = Dims::filled(x[0].rank() - target.size(), 1);
                for (int64_t size : target) kept.push_back(size);
                return sum_over(x[0], kept, target);
              },
          .large = {large},
          .accumulation = 64};
}

/// Position of the first greatest element along `axis`, for every other index.
Array first_greatest(const Array& x, int axis, bool values, bool keep_dims) {
  Dims kept = x.shape;
  kept[axis] = 1;
  Array y(kept);
  for (int64_t o = 0; o < y.count(); ++o) {
    Dims index = y.index(o), best = index;
    for (index[axis] = 0; index[axis] < x.shape[axis]; ++index[axis])
      if (x.at(index) > x.at(best)) best = index;
    y[o] = values ? x.at(best) : static_cast<double>(best[axis]);
  }
  if (!keep_dims) y.shape.erase(axis);
  return y;
}

OpCase max_row(const std::string& name, int64_t axis, bool keep_dims, std::vector<std::vector<Dims>> shapes) {
  return {.name = name,
          .inputs = {floating()},
          .shapes = std::move(shapes),
          .op = [=](const std::vector<Tensor>& x) { return max(x[0], axis, keep_dims); },
          .reference =
              [=](const Arrays& x) {
                return first_greatest(x[0], static_cast<int>((axis + x[0].rank()) % x[0].rank()), true, keep_dims);
              },
          .large = {{37, 11, 97}}};
}

std::vector<OpCase> rows() {
  const std::vector<std::vector<Dims>> any = {{{3, 5}}, {{}}, {{1}}, {{0, 4}}, {{2, 1, 3}}};
  const std::vector<std::vector<Dims>> three = {{{2, 3, 4}}, {{1, 1, 1}}, {{2, 0, 3}}, {{0, 2, 2}}, {{3, 1, 2}}};
  std::vector<OpCase> rows = {
      sum_row("sum_all", {}, false, any, {70001}),
      sum_row("sum_all_keep", {}, true, any, {3, 33333}),
      sum_row("sum_first", {0}, false, three, {403, 3, 50}),
      sum_row("sum_middle", {1}, false, three, {3, 300, 70}),
      sum_row("sum_last", {-1}, false, three, {50, 41, 33}),
      sum_row("sum_last_long", {-1}, true, three, {1, 2, 40000}),
      sum_row("sum_outer", {0, 2}, false, three, {101, 7, 201}),
      sum_row("sum_inner", {-1, -2}, true, three, {5, 121, 201}),
      mean_row("mean_all", {}, false, {{{3, 5}}, {{}}, {{1}}, {{2, 1, 3}}}),
      mean_row("mean_last", {-1}, true, {{{3, 5}}, {{1, 1}}, {{0, 2}}}),
      sum_to_row("sum_to_row", {4}, {{{3, 4}}, {{1, 4}}, {{0, 4}}, {{2, 3, 4}}}, {20000, 4}),
      sum_to_row("sum_to_column", {3, 1}, {{{3, 4}}, {{2, 3, 4}}, {{3, 0}}}, {20, 3, 1000}),
      sum_to_row("sum_to_scalar", {}, {{{3, 4}}, {{}}, {{0}}}, {200, 300}),
      max_row("max_last", -1, false, {{{3, 5}}, {{1}}, {{2, 3, 2}}, {{0, 3}}}),
      max_row("max_first_keep", 0, true, {{{3, 5}}, {{1}}, {{2, 3, 2}}}),
      max_row("max_middle", 1, false, {{{2, 4, 3}}, {{1, 1}}, {{2, 3, 0}}}),
  };
  OpCase argmax_row = max_row("argmax", 1, false, {{{2, 4, 3}}, {{1, 1}}, {{3, 5}}});
  argmax_row.op = [](const std::vector<Tensor>& x) { return argmax(x[0], 1); };
  argmax_row.reference = [](const Arrays& x) { return first_greatest(x[0], 1, false, false); };
  argmax_row.result = DType::i64;
  argmax_row.differentiable = false;
  rows.push_back(argmax_row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Reduce, OpCaseTest, testing::ValuesIn(rows()), op_case_name);

TEST(Reduce, LongSumsInFloatStayAccurate) {
  const int64_t n = 3'000'001;
  double each = static_cast<double>(0.1f);
  Tensor x = full({n}, 0.1);
  EXPECT_NEAR(sum(x).item() / (each * static_cast<double>(n)), 1.0, 2e-7);
  Tensor columns = full({200'003, 5}, 0.1);
  for (double v : to_vector<double>(sum(columns, {0}))) EXPECT_NEAR(v / (each * 200'003), 1.0, 4e-7);
}

TEST(Reduce, HalvesAccumulateInFloat) {
  EXPECT_EQ(sum(ones({10000}, {DType::f16})).item(), 10000);  // in f16 the sum would stay at 2048
  EXPECT_EQ(to_vector<double>(sum(ones({512, 2}, {DType::bf16}), {0})), (std::vector<double>{512, 512}));
}

TEST(Reduce, IntegersAndBoolsCountInI64) {
  Tensor x = from_values<uint8_t>({200, 100, 255, 1}, {2, 2});
  Tensor y = sum(x, {1});
  EXPECT_EQ(y.dtype(), DType::i64);
  EXPECT_EQ(to_vector<int64_t>(y), (std::vector<int64_t>{300, 256}));
  EXPECT_EQ(sum(greater(ones({3, 7}), zeros({}))).item(), 21);
}

TEST(Reduce, EmptySumIsZeroAndEmptyMeanIsNaN) {
  EXPECT_EQ(sum(zeros({0, 3})).item(), 0);
  EXPECT_EQ(to_vector<double>(sum(zeros({0, 3}), {0})), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item()));
}

TEST(Reduce, GreatestOfEqualsAndNaN) {
  Tensor x = from_values({1.0, 7.0, 7.0, 3.0}, {4});
  EXPECT_EQ(argmax(x, 0).item(), 1);
  set_requires_grad(x);
  backward(max(x, 0));
  EXPECT_EQ(to_vector<double>(grad(x)), (std::vector<double>{0, 1, 0, 0}));
  Tensor with_nan = from_values({1.0, double{NAN}, 9.0, double{NAN}}, {4});
  EXPECT_EQ(argmax(with_nan, 0).item(), 1);
  EXPECT_TRUE(std::isnan(max(with_nan, 0).item()));
}

TEST(Reduce, AllFinite) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Tensor x = ones({100, 401}, {dtype});
    EXPECT_TRUE(all_finite(x));
    for (double bad : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
      Tensor y = clone_data(x);
      fill_(alias(y, Layout{{}, {}, 401 * 57 + 3}), bad);
      EXPECT_FALSE(all_finite(y)) << dtype_name(dtype) << bad;
      EXPECT_TRUE(all_finite(alias(y, y.layout().narrow(0, 58, 42))));
    }
  }
  EXPECT_TRUE(all_finite(zeros({0})));
}

TEST(Reduce, ErrorsNameWhatCame) {
  Tensor x = zeros({2, 3});
  EXPECT_EQ(error_text([&] { sum(x, {2}); }), "sum: axis must be in [-2, 2), got 2");
  EXPECT_EQ(error_text([&] { sum(x, {1, -1}); }), "sum: axes must be distinct, got [1, -1]");
  EXPECT_EQ(error_text([&] { sum_to(x, {2}); }), "broadcast: [2] does not broadcast to [2, 3]");
  EXPECT_EQ(error_text([&] { max(zeros({2, 0}), 1); }), "max: axis 1 must not be empty, got [2, 0]");
  EXPECT_EQ(error_text([&] { mean(zeros({2}, {DType::i64})); }), "mean: expected a floating dtype, got i64");
}

}  // namespace
}  // namespace strata
