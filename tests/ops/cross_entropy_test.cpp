#include "autograd/ops/cross_entropy.h"

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/matmul.h"
#include "tensor/ledger.h"
#include "tensor/random.h"
#include "tests/error_of.h"
#include "tests/ops/op_case.h"
#include "tests/reference/cross_entropy.h"
#include "tests/reference/matmul.h"

namespace strata {
namespace {

using reference::Array;
using reference::Arrays;

const std::vector<DType> kWide = {DType::f64, DType::f32};

/// A row with the targets fixed (they must be in range and some ignored).
OpCase over_classes(const std::string& name, bool mean) {
  Input classes{-1, 5, {}, DType::i64};  // -1 stands for ignored
  CrossEntropyOptions options{.ignore_index = -1, .mean = mean};
  return {.name = name,
          .inputs = {floating(-3, 3), classes},
          .shapes = {{{7, 5}, {7}}, {{1, 5}, {1}}, {{0, 5}, {0}}},
          .op = [options](const std::vector<Tensor>& x) { return cross_entropy(x[0], x[1], options); },
          .reference = [mean](const Arrays& x) { return reference::cross_entropy(x[0], x[1], mean, -1); },
          .large = {{300, 517}, {300}},
          .dtypes = kWide,
          .f32_tolerance = 2e-5};
}

std::vector<OpCase> rows() {
  OpCase sum = over_classes("cross_entropy_sum", false);
  OpCase reduced = over_classes("cross_entropy_reduced", true);  // 16-bit logits, f32 loss
  reduced.dtypes = {DType::f32, DType::f16, DType::bf16};
  reduced.result = DType::f32;

  OpCase nll = over_classes("token_nll", true);
  nll.op = [](const std::vector<Tensor>& x) { return token_nll(x[0], x[1], -1); };
  nll.reference = [](const Arrays& x) { return reference::token_nll(x[0], x[1], -1); };
  nll.differentiable = false;

  OpCase fused{
      .name = "linear_cross_entropy",
      .inputs = {floating(), floating(), Input{-1, 5, {}, DType::i32}},
      .shapes = {{{7, 4}, {5, 4}, {7}}, {{1, 4}, {5, 4}, {1}}, {{0, 4}, {5, 4}, {0}}},
      .op = [](const std::vector<Tensor>& x) { return linear_cross_entropy(x[0], x[1], x[2], -1); },
      .reference =
          [](const Arrays& x) { return reference::cross_entropy(reference::linear(x[0], x[1]), x[2], false, -1); },
      .large = {{300, 60}, {517, 60}, {300}},
      .dtypes = kWide,
      .f32_tolerance = 2e-5,
      .twice = false};
  OpCase fused_reduced = fused;
  fused_reduced.name = "linear_cross_entropy_reduced";
  fused_reduced.dtypes = {DType::f32, DType::f16, DType::bf16};
  fused_reduced.result = DType::f32;
  return {over_classes("cross_entropy_mean", true), sum, reduced, nll, fused, fused_reduced};
}
INSTANTIATE_TEST_SUITE_P(CrossEntropy, OpCaseTest, testing::ValuesIn(rows()), op_case_name);

Tensor random_targets(int64_t N, int64_t V, uint64_t seed) {
  Generator generator(seed);
  std::vector<int64_t> targets(static_cast<size_t>(N));
  for (int64_t& t : targets) t = static_cast<int64_t>(generator.uniform() * static_cast<float>(V));
  return from_values(targets, {N});
}

// ln 32000 = 10.37349; 10.375 would mean that the sum ran in bf16.
TEST(CrossEntropy, UniformLogitsGiveLogV) {
  Tensor targets = from_values<int64_t>({0, 31999}, {2});
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Tensor logits = zeros({2, 32000}, {dtype});
    EXPECT_NEAR(cross_entropy(logits, targets).item(), 10.373491182, 1e-6) << dtype_name(dtype);
    for (double v : to_vector<double>(token_nll(logits, targets))) EXPECT_NEAR(v, 10.373491182, 2e-6);
  }
}

// bf16 logits of size 5, 40 and 160: log-sum-exp and probabilities against double, from the same logits.
TEST(CrossEntropy, LargeLogitsAgreeWithDouble) {
  constexpr int64_t N = 6, V = 2000;
  for (double magnitude : {5.0, 40.0, 160.0}) {
    SCOPED_TRACE(magnitude);
    Generator generator(17);
    Tensor narrow_logits = empty({N, V}, {DType::bf16});
    uniform_(narrow_logits, -magnitude, magnitude, generator);
    Tensor targets = random_targets(N, V, 18);
    Tensor logits = set_requires_grad(clone_data(narrow_logits, DType::f32));
    CrossEntropyOptions sum{.mean = false};
    Tensor dx = gradients({cross_entropy(logits, targets, sum)}, {logits})[0];
    Array nll = reference::token_nll(to_array(narrow_logits), to_array(targets));
    std::vector<double> got = to_vector<double>(token_nll(narrow_logits, targets)), p = to_vector<double>(dx);
    for (int64_t r = 0; r < N; ++r) {
      EXPECT_NEAR(got[static_cast<size_t>(r)] / nll[r], 1, 1e-6);
      double row = 0;
      for (int64_t j = 0; j < V; ++j) {
        int64_t target = static_cast<int64_t>(to_array(targets)[r]);
        double lse = nll[r] + to_array(logits).at({r, target});
        double expected = std::exp(to_array(logits).at({r, j}) - lse) - (j == target);
        double value = p[static_cast<size_t>(r * V + j)];
        ASSERT_NEAR(value, expected, 1e-5 * std::abs(expected) + 1e-12);
        row += value;
      }
      EXPECT_NEAR(row, 0, 1e-6);  // forward and backward see the same logits
    }
  }
}

TEST(CrossEntropy, EveryLabelIgnored) {
  for (bool mean : {true, false}) {
    Tensor logits = set_requires_grad(full({3, 4}, NAN));  // whatever is there
    Tensor loss = cross_entropy(logits, full({3}, kIgnoreIndex, {DType::i64}), {.mean = mean});
    EXPECT_EQ(loss.item(), 0);
    EXPECT_EQ(to_vector<float>(gradients({loss}, {logits})[0]), std::vector<float>(12, 0.0f));
  }
  Tensor x = set_requires_grad(full({3, 2}, NAN)), w = set_requires_grad(ones({4, 2}));
  Tensor loss = linear_cross_entropy(x, w, full({3}, kIgnoreIndex, {DType::i64}));
  EXPECT_EQ(loss.item(), 0);
  std::vector<Tensor> g = gradients({loss}, {x, w});
  EXPECT_EQ(to_vector<float>(g[0]), std::vector<float>(6, 0.0f));
  EXPECT_EQ(to_vector<float>(g[1]), std::vector<float>(8, 0.0f));
}

// An ignored row's logits may be anything; its gradient is 0 and it does not enter the mean.
TEST(CrossEntropy, IgnoredRowsAreExactlyZero) {
  Tensor logits = set_requires_grad(from_values<float>({0, 0, INFINITY, NAN, 0, 0}, {3, 2}));
  Tensor loss = cross_entropy(logits, from_values<int64_t>({0, kIgnoreIndex, 1}, {3}));
  EXPECT_FLOAT_EQ(static_cast<float>(loss.item()), 0.693147181f);
  EXPECT_EQ(to_vector<float>(gradients({loss}, {logits})[0]), (std::vector<float>{-0.25f, 0.25f, 0, 0, 0.25f, -0.25f}));
}

TEST(CrossEntropy, Errors) {
  Tensor logits = zeros({4, 10});
  auto with = [&](Tensor targets) { return error_of([&] { cross_entropy(logits, targets); }); };
  EXPECT_EQ(with(from_values<int64_t>({1, 2, 3, 12}, {4})),
            "cross_entropy: target must be in [0, 10) or -100 (ignored), got 12 at row 3");
  EXPECT_EQ(with(from_values<int32_t>({1, -1, 3, 2}, {4})),
            "cross_entropy: target must be in [0, 10) or -100 (ignored), got -1 at row 1");
  EXPECT_EQ(with(zeros({3}, {DType::i64})), "cross_entropy: targets must be [4], one per row, got [3]");
  EXPECT_EQ(with(zeros({4})), "cross_entropy: targets must be i32 or i64, got f32");
  EXPECT_EQ(error_of([] { cross_entropy(zeros({4}), zeros({4}, {DType::i64})); }),
            "cross_entropy: logits must be floating [N, V], got f32[4]");
  EXPECT_EQ(error_of([] {
              linear_cross_entropy(zeros({2, 3}), zeros({5, 3}), from_values<int64_t>({0, 5}, {2}));
            }),
            "linear_cross_entropy: target must be in [0, 5) or -100 (ignored), got 5 at row 1");
}

// Micro-batches of a sum give the loss and gradient of the whole, however they are cut.
TEST(LinearCrossEntropy, PartsAddUpToTheWhole) {
  Generator generator(21);
  Tensor x = randn({4, 16}, generator), w = set_requires_grad(randn({30, 16}, generator));
  Tensor targets = from_values<int64_t>({3, kIgnoreIndex, 29, 0}, {4});
  auto run = [&](const std::vector<int64_t>& parts) {
    set_grad(w, {});
    int64_t at = 0;
    double loss = 0;
    for (int64_t n : parts) {
      Tensor part = linear_cross_entropy(narrow(x, 0, at, n), w, narrow(targets, 0, at, n));
      backward(part, scalar(1.0 / 3));
      loss += part.item();
      at += n;
    }
    std::vector<double> result = to_vector<double>(grad(w));
    result.push_back(loss / 3);
    return result;
  };
  std::vector<double> whole = run({4});
  for (const std::vector<int64_t>& parts : {std::vector<int64_t>{1, 3}, {2, 2}, {1, 1, 1, 1}}) {
    std::vector<double> cut = run(parts);
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(cut[i], whole[i], 1e-6 * (std::abs(whole[i]) + 0.1)) << i;
  }
}

// More rows than a chunk holds, ignored ones strewn in: equal to the whole logits' loss.
TEST(LinearCrossEntropy, ManyChunksEqualOne) {
  constexpr int64_t N = 1500, V = 40, C = 24;
  Generator generator(22);
  for (DType w_dtype : {DType::f32, DType::bf16}) {
    Tensor x = set_requires_grad(randn({N, C}, generator));
    Tensor w = set_requires_grad(clone_data(randn({V, C}, generator), w_dtype));
    Tensor targets = random_targets(N, V, 23);
    for (int64_t r = 0; r < N; r += r % 5 + 1) targets.mutable_data<int64_t>()[r] = kIgnoreIndex;
    for (int64_t r = 300; r < 700; ++r) targets.mutable_data<int64_t>()[r] = kIgnoreIndex;
    Tensor fused = linear_cross_entropy(x, w, targets);
    Tensor whole = cross_entropy(linear(x, w), targets, {.mean = false});
    EXPECT_NEAR(fused.item() / whole.item(), 1, 1e-6);
    std::vector<Tensor> a = gradients({fused}, {x, w}, {scalar(0.25)}), b = gradients({whole}, {x, w}, {scalar(0.25)});
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(a[i].dtype(), i ? w_dtype : DType::f32);
      std::vector<double> got = to_vector<double>(a[i]), want = to_vector<double>(b[i]);
      double tolerance = a[i].dtype() == DType::bf16 ? 0x1p-7 : 2e-5;
      for (size_t j = 0; j < got.size(); ++j)
        ASSERT_NEAR(got[j], want[j], tolerance * (std::abs(want[j]) + 1)) << i << " " << j;
    }
    std::vector<float> dx = to_vector<float>(a[0]);
    for (int64_t j = 0; j < C; ++j) ASSERT_EQ(dx[static_cast<size_t>(400 * C + j)], 0) << "ignored row";
  }
}

// bf16 throughout: the logits stay in f32, so the loss is that of the rounded inputs in double.
TEST(LinearCrossEntropy, LogitsOfBf16AreNotRounded) {
  Generator generator(24);
  Tensor x = clone_data(randn({5, 64}, generator), DType::bf16),
         w = clone_data(randn({700, 64}, generator), DType::bf16);
  Tensor targets = random_targets(5, 700, 25);
  Array expected = reference::cross_entropy(reference::linear(to_array(x), to_array(w)), to_array(targets), false);
  EXPECT_NEAR(linear_cross_entropy(x, w, targets).item() / expected[0], 1, 1e-6);
}

TEST(LinearCrossEntropy, NeverHoldsTheLogits) {
  constexpr int64_t N = 4096, V = 4096, C = 8;
  Generator generator(26);
  Tensor x = set_requires_grad(randn({N, C}, generator)), w = randn({V, C}, generator),
         targets = random_targets(N, V, 27);
  ledger::reset_peak();
  int64_t before = ledger::current().total();
  Tensor loss = linear_cross_entropy(x, w, targets);
  EXPECT_LT(ledger::at_peak().total() - before, N * V * 4 / 6);
  EXPECT_GT(loss.item(), 0);
}

TEST(LinearCrossEntropy, NoSecondDerivative) {
  Tensor x = set_requires_grad(ones({2, 3})), w = ones({4, 3});
  Tensor loss = linear_cross_entropy(x, w, from_values<int64_t>({0, 1}, {2}));
  EXPECT_EQ(error_of([&] { gradients({loss}, {x}, {}, {.create_graph = true}); }),
            "linear_cross_entropy: no second derivative, its gradients are computed in the forward pass; use "
            "cross_entropy(linear(x, w), targets) under create_graph");
}

}  // namespace
}  // namespace strata
