#include "autograd/ops/matmul.h"

#include <gmock/gmock.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "tensor/kernels/matmul.h"
#include "tensor/ledger.h"
#include "tensor/parallel.h"
#include "tensor/random.h"
#include "tests/error_of.h"
#include "tests/ops/op_case.h"
#include "tests/reference/matmul.h"

namespace strata {
namespace {

using reference::Arrays;
using testing::HasSubstr;

OpCase matmul_row(const std::string& name, std::vector<std::vector<Dims>> shapes) {
  return {.name = name,
          .inputs = {floating(), floating()},
          .shapes = std::move(shapes),
          .op = [](const std::vector<Tensor>& x) { return matmul(x[0], x[1]); },
          .reference = [](const Arrays& x) { return reference::matmul(x[0], x[1]); },
          .large = {{130, 200}, {200, 150}},
          .f32_tolerance = 2e-5,
          .accumulation = 200};
}

constexpr double kScale = 0.75;

std::vector<OpCase> product_rows() {
  OpCase large_batch = matmul_row("matmul_batch", {{{2, 3, 4}, {2, 4, 5}}});
  large_batch.large = {{12, 30, 20}, {12, 20, 40}};
  return {
      matmul_row("matmul",
                 {{{10, 9}, {9, 12}}, {{9, 1}, {1, 9}}, {{12, 0}, {0, 10}}, {{0, 9}, {9, 12}}, {{9, 9}, {9, 0}}}),
      matmul_row("matmul_few_rows",
                 {{{3, 20}, {20, 9}}, {{1, 20}, {20, 30}}, {{30, 20}, {20, 1}}, {{1, 1}, {1, 1}}, {{8, 17}, {17, 11}}}),
      matmul_row("matmul_vectors",
                 {{{5}, {5}}, {{3}, {3, 4}}, {{2, 3}, {3}}, {{3}, {2, 3, 4}}, {{2, 2, 3}, {3}}, {{0}, {0}}}),
      large_batch,
      matmul_row("matmul_broadcast", {{{2, 3, 4}, {4, 5}},
                                      {{2, 1, 3, 4}, {5, 4, 2}},
                                      {{3, 4}, {2, 4, 2}},
                                      {{2, 3, 4}, {1, 4, 5}},
                                      {{1, 3, 4}, {2, 4, 5}},
                                      {{0, 3, 4}, {4, 5}},
                                      {{3, 10, 9}, {9, 10}}}),
  };
}
INSTANTIATE_TEST_SUITE_P(Matmul, OpCaseTest, testing::ValuesIn(product_rows()), op_case_name);

std::vector<OpCase> linear_rows() {
  OpCase linear_row{.name = "linear",
                    .inputs = {floating(), floating(), floating()},
                    .shapes = {{{2, 3, 8}, {5, 8}, {5}},
                               {{8}, {5, 8}, {5}},
                               {{0, 8}, {5, 8}, {5}},
                               {{1, 1}, {1, 1}, {1}},
                               {{12, 9}, {10, 9}, {10}}},
                    .op = [](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2]); },
                    .reference = [](const Arrays& x) { return reference::linear(x[0], x[1], x[2]); },
                    .large = {{150, 200}, {170, 200}, {170}},
                    .f32_tolerance = 2e-5,
                    .roundings = 2,  // the bias goes through the result's dtype
                    .accumulation = 200};
  OpCase plain = linear_row;
  plain.name = "linear_no_bias";
  plain.inputs.pop_back();
  for (auto& shapes : plain.shapes) shapes.pop_back();
  plain.large.pop_back();
  plain.op = [](const std::vector<Tensor>& x) { return linear(x[0], x[1]); };
  plain.reference = [](const Arrays& x) { return reference::linear(x[0], x[1]); };

  OpCase low_rank{
      .name = "linear_low_rank",
      .inputs = {floating(), floating(), floating(), floating(), floating()},
      .shapes = {{{2, 3, 8}, {5, 8}, {5}, {2, 8}, {5, 2}},
                 {{8}, {5, 8}, {5}, {1, 8}, {5, 1}},
                 {{0, 8}, {5, 8}, {5}, {2, 8}, {5, 2}},
                 {{10, 9}, {11, 9}, {11}, {9, 9}, {11, 9}}},
      .op = [](const std::vector<Tensor>& x) { return linear_low_rank(x[0], x[1], x[2], x[3], x[4], kScale); },
      .reference =
          [](const Arrays& x) {
            return reference::add_low_rank(reference::linear(x[0], x[1], x[2]), x[0], x[3], x[4], kScale);
          },
      .large = {{150, 200}, {170, 200}, {170}, {16, 200}, {170, 16}},
      .f32_tolerance = 5e-5,
      .roundings = 3,
      .accumulation = 400};
  OpCase added{
      .name = "add_low_rank",
      .inputs = {floating(), floating(), floating(), floating()},
      .shapes = {{{2, 3, 5}, {2, 3, 8}, {2, 8}, {5, 2}}, {{5}, {8}, {2, 8}, {5, 2}}, {{0, 5}, {0, 8}, {2, 8}, {5, 2}}},
      .op = [](const std::vector<Tensor>& x) { return add_low_rank_(mul(x[0], 2.0), x[1], x[2], x[3], kScale); },
      .reference =
          [](const Arrays& x) {
            return reference::add_low_rank(reference::map(x[0], [](double v) { return 2 * v; }), x[1], x[2], x[3],
                                           kScale);
          },
      .large = {{150, 170}, {150, 200}, {16, 200}, {170, 16}},
      .f32_tolerance = 5e-5,
      .roundings = 3,
      .accumulation = 400};
  return {linear_row, plain, low_rank, added};
}
INSTANTIATE_TEST_SUITE_P(Linear, OpCaseTest, testing::ValuesIn(linear_rows()), op_case_name);

TEST(MatmulErrors, NameWhatCame) {
  EXPECT_EQ(error_of([] {
              matmul(ones({2, 3}), ones({4, 5}));
            }),
            "matmul: inner dimensions differ, got [2, 3] x [4, 5]");
  EXPECT_EQ(error_of([] { matmul(ones({2}), ones({3})); }), "matmul: inner dimensions differ, got [2] x [3]");
  EXPECT_EQ(error_of([] {
              matmul(ones({2, 3}, {DType::i64}), ones({3, 5}, {DType::i64}));
            }),
            "matmul: expected floating operands, got i64 and i64");
  EXPECT_EQ(error_of([] {
              matmul(ones({2, 3}), ones({3, 5}, {DType::f64}));
            }),
            "matmul: operands must have one dtype, got f32 and f64");
  EXPECT_EQ(error_of([] {
              matmul(ones({2, 2, 3}), ones({5, 3, 4}));
            }),
            "matmul: leading axes do not broadcast, got [2, 2, 3] x [5, 3, 4]");
  EXPECT_EQ(error_of([] { matmul(ones({}), ones({3})); }), "matmul: operands need at least one axis, got [] x [3]");
  EXPECT_EQ(error_of([] {
              linear(ones({2, 3}), ones({4, 5}));
            }),
            "linear: inner dimensions differ, got x [2, 3] and w [4, 5]");
  EXPECT_EQ(error_of([] { linear(ones({2, 3}), ones({4, 3}), ones({3})); }), "linear: bias must be [4], got [3]");
  EXPECT_EQ(error_of([] {
              linear_low_rank(ones({2, 3}), ones({4, 3}), {}, ones({2, 3}), ones({3, 2}), 1);
            }),
            "linear_low_rank: expected A [r, 3] and B [4, r], got [2, 3] and [3, 2]");
}

/// Random values that a 16-bit dtype holds exactly.
Tensor random_values(const Dims& shape, uint64_t seed, DType rounded_to = DType::f32) {
  Generator generator(seed);
  return clone_data(clone_data(randn(shape, generator), rounded_to), DType::f32);
}

// A 16-bit weight under f32 activations: the numbers are those of the widened weight.
TEST(MatmulMixed, ReducedWeightEqualsItsWidenedCopy) {
  for (DType dtype : {DType::bf16, DType::f16})
    for (int64_t rows : {1, 5, 20}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " rows " + std::to_string(rows));
      Tensor x = set_requires_grad(random_values({rows, 2048}, 1)), wide = random_values({1100, 2048}, 2, dtype);
      Tensor w = clone_data(wide, dtype);  // 1100 x 2048: several panels
      Tensor y = linear(x, w), expected = linear(x, wide);
      EXPECT_EQ(y.dtype(), DType::f32);
      std::vector<float> got = to_vector<float>(y), want = to_vector<float>(expected);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-4) << i;
      set_requires_grad(w);
      std::vector<Tensor> g = gradients({linear(x, w)}, {x, w}, {ones(y.shape())});
      EXPECT_EQ(g[0].dtype(), DType::f32);
      EXPECT_EQ(g[1].dtype(), dtype);
    }
}

// y += alpha a b for every way operands can lie, and in every dtype.
TEST(MatmulKernel, ScalesAndAccumulates) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (Dims shape : {Dims{3, 20, 15}, Dims{15, 20, 3}, Dims{1, 20, 30}, Dims{20, 12, 17}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + to_string(shape));
      int64_t M = shape[0], K = shape[1], N = shape[2];
      Tensor a = clone_data(random_values({M, K}, 3), dtype), b = clone_data(random_values({K, N}, 4), dtype);
      Tensor y = full({M, N}, 2, {dtype});
      kernels::matmul(y.device(), a, b, y, kernels::MatmulOptions{.alpha = -0.5, .accumulate = true});
      reference::Array product = reference::matmul(to_array(a), to_array(b));
      double u = dtype == DType::f64 ? 1e-15 : dtype == DType::f32 ? 1e-6 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
      std::vector<double> got = to_vector<double>(y);
      for (int64_t i = 0; i < product.count(); ++i)
        ASSERT_NEAR(got[static_cast<size_t>(i)], 2 - 0.5 * product[i], u * (20 + std::abs(product[i])));
    }
}

// A row gives the same bits alone as with seven others, and whatever the number of threads.
TEST(MatmulFewRows, ARowIsTheSameInCompany) {
  Tensor x = random_values({8, 203}, 5), w = random_values({1003, 203}, 6);
  int threads = num_threads();
  set_num_threads(1);
  std::vector<float> all = to_vector<float>(linear(x, w));
  for (int n : {1, 2}) {
    set_num_threads(n);
    for (int64_t rows = 1; rows <= 8; ++rows) {
      std::vector<float> some = to_vector<float>(linear(narrow(x, 0, 0, rows), w));
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << rows << " rows, " << n << " threads";
    }
  }
  set_num_threads(threads);
}

// A frozen weight keeps no activation for itself: x [R, K] and h = x A^T [R, r] are all there is.
TEST(LinearLowRank, KeepsOnlyTheInputAndTheNarrowProduct) {
  constexpr int64_t R = 64, K = 128, N = 256, r = 4;
  Tensor w = ones({N, K}), a = set_requires_grad(ones({r, K})), b = set_requires_grad(ones({N, r}));
  Tensor x = set_requires_grad(ones({R, K}));
  int64_t before = ledger::current()[MemoryKind::activation];
  Tensor y = linear_low_rank(x, w, {}, a, b, 0.5);
  int64_t kept = ledger::current()[MemoryKind::activation] - before;
  int64_t parameters = a.bytes() + b.bytes() + w.bytes();  // here they are workspace, captured like any other
  EXPECT_EQ(kept - parameters, (R * K + R * r) * 4);
  backward(y, ones(y.shape()));
  EXPECT_TRUE(grad(a) && grad(b));
  EXPECT_EQ(to_vector<float>(grad(a))[0], 0.5f * N * R);  // sum over N of B, over R of x, times scale
  EXPECT_EQ(to_vector<float>(grad(b))[0], 0.5f * K * R);
}

TEST(AddLowRank, WritesInPlaceOnlyWhereNobodyReads) {
  Tensor x = random_values({6, 8}, 7), a = set_requires_grad(random_values({2, 8}, 8)),
         b = set_requires_grad(random_values({5, 2}, 9));
  Tensor leaf = set_requires_grad(random_values({6, 5}, 10));

  Tensor fresh = mul(leaf, 2.0);  // its formula keeps no tensor
  Tensor y = add_low_rank_(fresh, x, a, b, 0.5);
  EXPECT_EQ(y.storage(), fresh.storage());

  Tensor needed = exp(leaf);  // its formula reads the result again
  Tensor z = add_low_rank_(needed, x, a, b, 0.5);
  EXPECT_NE(z.storage(), needed.storage());
  std::vector<Tensor> g = gradients({z}, {leaf}, {ones(z.shape())});
  EXPECT_EQ(to_vector<float>(g[0]), to_vector<float>(exp(detach(leaf))));

  Tensor own = add_low_rank_(leaf, x, a, b, 0.5);
  EXPECT_NE(own.storage(), leaf.storage());
  NoGrad off;
  EXPECT_EQ(add_low_rank_(leaf, x, a, b, 0.0).storage(), leaf.storage());
}

}  // namespace
}  // namespace strata
