#include "autograd/ops/copy.h"

#include <gmock/gmock.h>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

/// y of `shape`, y[index] = x[source(index)].
template <class F>
Array pick(const Array& x, const Dims& shape, F&& source) {
  Array y(shape);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = x.at(source(y.index(i)));
  return y;
}

OpCase view(const std::string& name, std::vector<std::vector<Dims>> shapes, Tensor (*op)(const Tensor&),
            std::function<Array(const Array&)> value) {
  return {.name = name,
          .inputs = {floating()},
          .shapes = std::move(shapes),
          .op = [op](const std::vector<Tensor>& x) { return op(x[0]); },
          .reference = [value](const Arrays& x) { return value(x[0]); },
          .large = {{120, 60, 10}},
          .accumulation = 64};
}

Array with_shape(Array x, const Dims& shape) {
  return {shape, std::move(x.values)};
}

Array transposed(const Array& x, int a, int b) {
  Dims shape = x.shape;
  std::swap(shape[a], shape[b]);
  return pick(x, shape, [&](Dims index) {
    std::swap(index[a], index[b]);
    return index;
  });
}

Array narrowed(const Array& x, int axis, int64_t start, int64_t length, int64_t step) {
  Dims shape = x.shape;
  shape[axis] = length;
  return pick(x, shape, [&](Dims index) {
    index[axis] = start + index[axis] * step;
    return index;
  });
}

std::vector<OpCase> view_rows() {
  const std::vector<std::vector<Dims>> any = {{{2, 3, 4}}, {{1, 1, 1}}, {{2, 0, 3}}};
  std::vector<OpCase> rows = {
      view(
          "reshape", {{{2, 3, 4}}, {{6, 4}}, {{1, 4, 6}}, {{0, 4}}},
          [](const Tensor& x) {
            return reshape(x, {-1, 4});
          },
          [](const Array& x) {
            return with_shape(x, {x.count() / 4, 4});
          }),
      view(
          "transpose", any, [](const Tensor& x) { return transpose(x); },
          [](const Array& x) { return transposed(x, 1, 2); }),
      view(
          "transpose_first", any, [](const Tensor& x) { return transpose(x, 0, -1); },
          [](const Array& x) { return transposed(x, 0, 2); }),
      view(
          "permute", any,
          [](const Tensor& x) {
            return permute(x, {2, 0, -2});
          },
          [](const Array& x) { return transposed(transposed(x, 1, 2), 0, 1); }),
      view(
          "narrow", {{{2, 5, 3}}, {{1, 3, 1}}, {{0, 4, 2}}}, [](const Tensor& x) { return narrow(x, 1, 1, 2); },
          [](const Array& x) { return narrowed(x, 1, 1, 2, 1); }),
      view(
          "narrow_step", {{{2, 3, 7}}, {{6}}, {{0, 5}}}, [](const Tensor& x) { return narrow(x, -1, 1, 2, 3); },
          [](const Array& x) { return narrowed(x, x.rank() - 1, 1, 2, 3); }),
      view(
          "narrow_nothing", {{{2, 3}}}, [](const Tensor& x) { return narrow(x, 0, 2, 0); },
          [](const Array& x) { return narrowed(x, 0, 2, 0, 1); }),
      view(
          "select", {{{3, 2, 4}}, {{3, 2}}, {{0, 2, 3}}}, [](const Tensor& x) { return select(x, 1, 1); },
          [](const Array& x) {
            Array y = narrowed(x, 1, 1, 1, 1);
            y.shape.erase(1);
            return y;
          }),
      view(
          "unsqueeze", any, [](const Tensor& x) { return unsqueeze(x, -1); },
          [](const Array& x) {
            Dims shape = x.shape;
            shape.push_back(1);
            return with_shape(x, shape);
          }),
      view(
          "squeeze", {{{2, 1, 3}}, {{1, 1, 1}}, {{0, 1}}}, [](const Tensor& x) { return squeeze(x, 1); },
          [](const Array& x) {
            Dims shape = x.shape;
            shape.erase(1);
            return with_shape(x, shape);
          }),
      view(
          "expand", {{{3, 1, 2}}, {{1}}, {{1, 1, 1}}, {{}}},
          [](const Tensor& x) {
            return expand(x, {2, 3, 4, 2});
          },
          [](const Array& x) {
            return reference::broadcast(x, {2, 3, 4, 2});
          }),
      view(
          "contiguous", any, [](const Tensor& x) { return contiguous(x); }, [](const Array& x) { return x; }),
      view(
          "clone", any, [](const Tensor& x) { return clone(x); }, [](const Array& x) { return x; }),
  };
  for (OpCase& row : rows)
    if (row.name == "squeeze")
      row.large = {{200, 1, 300}};
    else if (row.name == "expand")
      row.large = {{3, 1, 2}};
  return rows;
}

/// Parts one after the other along `axis`.
Array joined(const Arrays& parts, int axis) {
  Dims shape = parts[0].shape;
  for (size_t i = 1; i < parts.size(); ++i) shape[axis] += parts[i].shape[axis];
  Array y(shape);
  int64_t start = 0;
  for (const Array& part : parts) {
    for (int64_t i = 0; i < part.count(); ++i) {
      Dims index = part.index(i);
      index[axis] += start;
      y.at(index) = part[i];
    }
    start += part.shape[axis];
  }
  return y;
}

std::vector<OpCase> join_rows() {
  OpCase first{.name = "cat_first",
               .inputs = {floating(), floating(), floating()},
               .shapes = {{{2, 3}, {1, 3}, {4, 3}}, {{0, 3}, {2, 3}, {0, 3}}, {{1}, {1}, {1}}, {{0}, {0}, {0}}},
               .op = [](const std::vector<Tensor>& x) { return cat(x, 0); },
               .reference = [](const Arrays& x) { return joined(x, 0); },
               .large = {{100, 300}, {50, 300}, {1, 300}}};
  OpCase last = first;
  last.name = "cat_last";
  last.shapes = {{{2, 3}, {2, 1}, {2, 4}}, {{2, 0}, {2, 2}, {2, 0}}, {{3}, {1}, {2}}};
  last.op = [](const std::vector<Tensor>& x) { return cat(x, -1); };
  last.reference = [](const Arrays& x) { return joined(x, x[0].rank() - 1); };
  last.large = {{300, 100}, {300, 50}, {300, 1}};
  OpCase stacked = first;
  stacked.name = "stack";
  stacked.shapes = {{{2, 3}, {2, 3}, {2, 3}}, {{1}, {1}, {1}}, {{2, 0}, {2, 0}, {2, 0}}};
  stacked.op = [](const std::vector<Tensor>& x) { return stack(x, 1); };
  stacked.reference = [](Arrays x) {
    for (Array& part : x) part.shape.insert(1, 1);
    return joined(x, 1);
  };
  stacked.large = {{300, 100}, {300, 100}, {300, 100}};
  return {first, last, stacked};
}

INSTANTIATE_TEST_SUITE_P(View, OpCaseTest, testing::ValuesIn(view_rows()), op_case_name);
INSTANTIATE_TEST_SUITE_P(Join, OpCaseTest, testing::ValuesIn(join_rows()), op_case_name);

TEST(Copy, ViewsShareBytes) {
  Tensor x = arange(24, {DType::f32});
  for (const Tensor& y : {reshape(x, {2, 12}), narrow(x, 0, 3, 5, 2), select(x, 0, 7), unsqueeze(x, 0),
                          expand(x, {3, 24}), permute(reshape(x, {2, 3, 4}), {2, 0, 1})})
    EXPECT_EQ(y.storage(), x.storage());
  EXPECT_TRUE(contiguous(x).same_as(x));
  EXPECT_NE(clone(x).storage(), x.storage());
  Tensor turned = transpose(reshape(x, {4, 6}));
  EXPECT_NE(reshape(turned, {24}).storage(), x.storage());  // strides do not allow a view
  EXPECT_NE(contiguous(turned).storage(), x.storage());
}

TEST(Copy, ConversionKeepsTheGraphBetweenFloats) {
  Tensor x = from_values({1.0, 2.5, -3.0}, {3});
  set_requires_grad(x);
  Tensor y = to(x, DType::bf16);
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_TRUE(to(x, DType::f64).same_as(x));
  backward(sum(y * y));
  EXPECT_EQ(grad(x).dtype(), DType::f64);
  EXPECT_EQ(to_vector<double>(grad(x)), (std::vector<double>{2, 5, -6}));
  EXPECT_FALSE(requires_grad(to(x, DType::i32)));
  EXPECT_EQ(to_vector<int64_t>(to(x, DType::i32)), (std::vector<int64_t>{1, 2, -3}));
  EXPECT_TRUE(to(x, Device::cpu()).same_as(x));
}

TEST(Copy, AViewOfAViewSendsTheGradientToTheRightElements) {
  Tensor x = zeros({4, 6}, {DType::f64});
  set_requires_grad(x);
  backward(sum(select(narrow(transpose(x), 0, 1, 3, 2), 1, 2)));  // elements [2, 1], [2, 3], [2, 5]
  std::vector<double> expected(24, 0.0);
  for (size_t column : {1, 3, 5}) expected[2 * 6 + column] = 1;
  EXPECT_EQ(to_vector<double>(grad(x)), expected);
}

TEST(Copy, ErrorsNameWhatCame) {
  Tensor x = zeros({2, 3});
  EXPECT_EQ(error_text([&] { reshape(x, {4, -1}); }), "reshape: 6 elements do not fit shape [4, -1]");
  EXPECT_EQ(error_text([&] { reshape(x, {-1, -1}); }), "reshape: at most one size may be -1, got [-1, -1]");
  EXPECT_EQ(error_text([&] { narrow(x, 1, 2, 2); }), "narrow: [2, +2 by 1) must lie in axis 1 of [2, 3]");
  EXPECT_EQ(error_text([&] { select(x, 0, 2); }), "select: index must be in [0, 2), got 2");
  EXPECT_EQ(error_text([&] { transpose(x, 0, 2); }), "transpose: axis must be in [-2, 2), got 2");
  EXPECT_EQ(error_text([&] { permute(x, {0, 0}); }), "permute: axes must be distinct, got [0, 0]");
  EXPECT_EQ(error_text([&] { squeeze(x, 1); }), "squeeze: axis 1 must have size 1, got [2, 3]");
  EXPECT_EQ(error_text([&] { expand(x, {4, 3}); }), "broadcast: [2, 3] does not broadcast to [4, 3]");
  EXPECT_EQ(error_text([&] {
              cat({x, zeros({2, 4})}, 0);
            }),
            "cat: shapes must agree but for axis 0, got [2, 3] and [2, 4]");
  EXPECT_EQ(error_text([&] {
              cat({x, zeros({2, 3}, {DType::f64})}, 0);
            }),
            "cat: parts must have one dtype, got f32 and f64");
  EXPECT_EQ(error_text([&] { cat({}, 0); }), "cat: expected at least one tensor, got none");
  EXPECT_EQ(error_text([&] { stack({x, zeros({3, 2})}, 0); }), "stack: shapes must agree, got [2, 3] and [3, 2]");
}

}  // namespace
}  // namespace strata
