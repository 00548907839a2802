#include "autograd/ops/index.h"

#include <gmock/gmock.h>

#include "autograd/autograd.h"
#include "autograd/ops/reduce.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

/// x[ids, ...] under ids' shape followed by the rest of x's.
Array rows_of(const Arrays& x) {
  Dims shape = x[1].shape;
  int64_t columns = 1;
  for (int k = 1; k < x[0].rank(); ++k) {
    shape.push_back(x[0].shape[k]);
    columns *= x[0].shape[k];
  }
  Array y(shape);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = x[0][static_cast<int64_t>(x[1][i / columns]) * columns + i % columns];
  return y;
}

Array gathered(const Arrays& x) {
  Array y(x[1].shape);
  for (int64_t i = 0; i < y.count(); ++i) {
    Dims index = y.index(i);
    index[index.size() - 1] = static_cast<int64_t>(x[1][i]);
    y[i] = x[0].at(index);
  }
  return y;
}

std::vector<OpCase> rows() {
  OpCase embed{.name = "embedding",
               .inputs = {floating(), indices(5)},
               .shapes = {{{5, 3}, {2, 4}}, {{5, 1}, {1}}, {{5, 2}, {}}, {{5, 3}, {0}}, {{5, 0}, {3}}},
               .op = [](const std::vector<Tensor>& x) { return embedding(x[0], x[1]); },
               .reference = rows_of,
               .large = {{5, 700}, {99}},
               .accumulation = 100};
  OpCase select = embed;
  select.name = "index_select";
  select.inputs = {floating(), indices(5, DType::i32)};
  select.shapes = {{{5, 3, 2}, {7}}, {{5}, {3}}, {{5, 1, 1}, {1}}, {{5, 2}, {0}}};
  select.op = [](const std::vector<Tensor>& x) { return index_select(x[0], x[1]); };
  OpCase along{.name = "gather",
               .inputs = {floating(), indices(4)},
               .shapes = {{{2, 3, 4}, {2, 3, 6}}, {{4}, {1}}, {{1, 4}, {1, 1}}, {{0, 4}, {0, 2}}, {{2, 4}, {2, 0}}},
               .op = [](const std::vector<Tensor>& x) { return gather(x[0], x[1]); },
               .reference = gathered,
               .large = {{9000, 4}, {9000, 5}},
               .accumulation = 10};
  return {embed, select, along};
}

INSTANTIATE_TEST_SUITE_P(Index, OpCaseTest, testing::ValuesIn(rows()), op_case_name);

TEST(Index, GradientAddsUpRowsThatAppearTwice) {
  Tensor w = zeros({4, 2}, {DType::f64});
  set_requires_grad(w);
  Tensor y = embedding(w, from_values<int64_t>({3, 1, 3, 3}, {2, 2}));
  backward(y, from_values({1.0, 2.0, 10.0, 20.0, 100.0, 200.0, 1000.0, 2000.0}, {2, 2, 2}));
  EXPECT_EQ(to_vector<double>(grad(w)), (std::vector<double>{0, 0, 10, 20, 0, 0, 1101, 2202}));
}

TEST(Index, GradientOfBf16RowsAccumulatesInFloat) {
  Tensor w = zeros({2, 1}, {DType::bf16});
  set_requires_grad(w);
  backward(sum(embedding(w, zeros({1000}, {DType::i64}))));
  EXPECT_EQ(to_vector<double>(grad(w)), (std::vector<double>{1000, 0}));  // bf16 alone would stop at 256
}

TEST(Index, AnyDtypeIsSelected) {
  Tensor x = from_values<int64_t>({10, 11, 20, 21}, {2, 2});
  EXPECT_EQ(to_vector<int64_t>(index_select(x, from_values<int32_t>({1, 1, 0}, {3}))),
            (std::vector<int64_t>{20, 21, 20, 21, 10, 11}));
  EXPECT_EQ(to_vector<int64_t>(gather(x, from_values<int64_t>({1, 0}, {2, 1}))), (std::vector<int64_t>{11, 20}));
}

TEST(Index, ErrorsNameWhatCame) {
  Tensor w = zeros({512, 4});
  EXPECT_EQ(error_text([&] {
              embedding(w, from_values<int64_t>({0, 511, 5, 700, -3}, {5}));
            }),
            "embedding: ids must be in [0, 512), got 700 at position 3");
  EXPECT_EQ(error_text([&] { index_select(w, from_values<int32_t>({-1}, {1})); }),
            "index_select: ids must be in [0, 512), got -1 at position 0");
  EXPECT_EQ(error_text([&] {
              gather(w, full({512, 1}, 4, {DType::i64}));
            }),
            "gather: ids must be in [0, 4), got 4 at position 0");
  EXPECT_EQ(error_text([&] { embedding(w, zeros({2})); }), "embedding: ids must be i32 or i64, got f32");
  EXPECT_EQ(error_text([&] { embedding(zeros({3}), zeros({2}, {DType::i64})); }),
            "embedding: weight must be [V, C], got [3]");
  EXPECT_EQ(error_text([&] {
              gather(w, zeros({2, 1}, {DType::i64}));
            }),
            "gather: x and ids must agree but for the last axis, got [512, 4] and [2, 1]");
}

}  // namespace
}  // namespace strata
