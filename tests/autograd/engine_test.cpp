#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/create.h"
#include "tensor/random.h"

namespace strata {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor leaf(std::initializer_list<double> values) {
  return set_requires_grad(from_values<double>(values, {static_cast<int64_t>(values.size())}));
}
std::vector<double> values(const Tensor& t) {
  return to_vector<double>(t);
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Engine, AccumulatesOverUsesAndCalls) {
  Tensor x = leaf({2, 3});
  backward(sum(x * x + x));
  EXPECT_THAT(values(grad(x)), ElementsAre(5, 7));
  backward(sum(x));
  EXPECT_THAT(values(grad(x)), ElementsAre(6, 8));
}

TEST(Engine, UnBroadcasts) {
  Tensor x = leaf({2, 3});
  Tensor column = set_requires_grad(from_values<double>({1, 10, 100}, {3, 1}));
  backward(sum(x * column));
  EXPECT_THAT(values(grad(x)), ElementsAre(111, 111));
  EXPECT_THAT(values(grad(column)), ElementsAre(5, 5, 5));
}

TEST(Engine, AMillionNodesBuildRunAndFreeWithoutRecursion) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 1000000; ++i) y = y + x;
  EXPECT_EQ(graph_size(y), 1000000);
  backward(y, {}, {.retain_graph = true});
  EXPECT_THAT(values(grad(x)), ElementsAre(1000001));
  y = Tensor();  // frees the chain
  Tensor z = x;
  for (int i = 0; i < 200000; ++i) z = exp(z * 0.0);  // these nodes keep activations; freed without a backward
}

TEST(Engine, FrozenInputsKeepNoActivation) {
  Tensor x = set_requires_grad(zeros({64, 64}));
  Tensor w = zeros({64, 64});
  int64_t before = ledger::current()[MemoryKind::activation];
  Tensor y = matmul(x, w);  // needs w for dx, not x for dw
  int64_t kept = ledger::current()[MemoryKind::activation] - before;
  EXPECT_EQ(kept, 64 * 64 * 4);
  set_requires_grad(w);
  Tensor z = matmul(x, w);
  EXPECT_EQ(ledger::current()[MemoryKind::activation] - before, 2 * 64 * 64 * 4);
  y = z = Tensor();
  EXPECT_EQ(ledger::current()[MemoryKind::activation], before);
}

TEST(Engine, StaleWriteIsNamed) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  Tensor z = y * y;
  {
    NoGrad off;
    add_(y, from_values<double>({1, 1}, {2}));
  }
  std::string error = error_of([&] { backward(sum(z)); });
  EXPECT_THAT(error, HasSubstr("mul: a tensor needed for the gradient"));
  EXPECT_THAT(error, HasSubstr("was written in place"));
}

TEST(Engine, SecondBackwardNeedsRetainGraph) {
  Tensor x = leaf({3});
  Tensor y = x * x;
  backward(y, {}, {.retain_graph = true});
  backward(y);
  EXPECT_THAT(values(grad(x)), ElementsAre(12));
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("already released; pass retain_graph"));
}

TEST(Engine, SecondDerivatives) {
  Tensor x = leaf({0.5, 2});
  Tensor y = sum(exp(x) * x);  // (1 + x) e^x
  Tensor dx = gradients({y}, {x}, {}, {.create_graph = true})[0];
  Tensor ddx = gradients({sum(dx)}, {x})[0];  // (2 + x) e^x
  EXPECT_NEAR(values(ddx)[0], 2.5 * std::exp(0.5), 1e-12);
  EXPECT_NEAR(values(ddx)[1], 4 * std::exp(2.0), 1e-12);
  EXPECT_FALSE(grad(x));
}

TEST(Engine, GradientsOfIntermediates) {
  Tensor x = leaf({2});
  Tensor h = x * 3.0;
  Tensor unused = x * 5.0;
  auto g = gradients({h * h}, {h, x, unused});
  EXPECT_THAT(values(g[0]), ElementsAre(12));
  EXPECT_THAT(values(g[1]), ElementsAre(36));
  EXPECT_FALSE(g[2]);
}

TEST(Engine, HooksSeeAndReplaceGradients) {
  Tensor x = leaf({1});
  Tensor h = x * 2.0;
  double seen = 0;
  register_hook(h, [&](const Tensor& g) {
    seen = g.item();
    return g * 10.0;
  });
  register_hook(x, [](const Tensor& g) { return g + 1.0; });
  backward(h * 3.0);
  EXPECT_EQ(seen, 3);
  EXPECT_THAT(values(grad(x)), ElementsAre(61));
}

TEST(Engine, ErrorsSayWhatIsWrong) {
  Tensor x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { backward(x * 1.0); }), HasSubstr("backward: an output of shape [2] needs a gradient"));
  EXPECT_THAT(error_of([&] { backward(ones({1})); }), HasSubstr("wants no gradient"));
  EXPECT_THAT(error_of([&] { set_requires_grad(arange(3)); }), HasSubstr("expected a floating dtype, got i64"));
  EXPECT_THAT(error_of([&] { set_requires_grad(x * 1.0); }), HasSubstr("only leaves can be marked"));
}

TEST(Engine, NoGradRecordsNothing) {
  Tensor x = leaf({1});
  NoGrad off;
  EXPECT_FALSE(requires_grad(x * 2.0));
  EnableGrad on;
  EXPECT_TRUE(requires_grad(x * 2.0));
}

TEST(Engine, AnomalyModeNamesTheFirstBadOp) {
  Tensor x = leaf({0, 1});
  AnomalyMode anomaly;
  NameScope scope("model.layers.3");
  EXPECT_THAT(error_of([&] { sum(log(x) * 2.0); }),
              HasSubstr("anomaly: output of 'log' holds NaN or infinity (shape [2]) in model.layers.3"));
  EXPECT_THAT(error_of([&] { backward(sum(sqrt(x))); }),
              HasSubstr("anomaly: gradient of 'sqrt' holds NaN or infinity"));
}

TEST(Engine, GradientsOfTwoInputsThatAreOneBuffer) {
  Tensor x = leaf({1, 2});
  Tensor y = leaf({3, 4});
  backward(sum(x + y));  // add hands the same dy to both
  add_(grad(x), from_values<double>({1, 1}, {2}));
  EXPECT_THAT(values(grad(y)), ElementsAre(1, 1));
}

TEST(Engine, NothingLeaks) {
  int64_t before = ledger::current().total();
  {
    Tensor x = set_requires_grad(ones({100, 100}));
    Tensor y = exp(x);  // keeps its own output
    Tensor z = sum(y * y);
    backward(z);
    Tensor unused = exp(x) * 2.0;
  }
  EXPECT_EQ(ledger::current().total(), before);
}

TEST(Engine, DotNamesEveryNode) {
  Tensor x = leaf({1});
  std::string dot = graph_to_dot(exp(x * 2.0));
  EXPECT_THAT(dot, HasSubstr("digraph"));
  EXPECT_THAT(dot, HasSubstr("exp"));
  EXPECT_THAT(dot, HasSubstr("leaf"));
}

TEST(Checkpoint, SameBitsWithDropoutNestedAndTheSameStreamAfterwards) {
  auto run = [](bool checkpointing) {
    manual_seed(5);
    Tensor x = set_requires_grad(randn({8, 16}));
    Tensor w = set_requires_grad(randn({16, 16}));
    auto inner = [&](const std::vector<Tensor>& in) { return dropout(tanh(matmul(in[0], w)), 0.5); };
    auto outer = [&](const std::vector<Tensor>& in) {
      Tensor h = dropout(in[0], 0.5);
      h = checkpointing ? checkpoint(inner, {h}) : inner({h});
      return dropout(exp(h), 0.5);
    };
    Tensor y = checkpointing ? checkpoint(outer, {x}) : outer({x});
    Tensor loss = sum(y * y);
    backward(loss);
    std::vector<double> all = values(grad(x));
    for (double v : values(grad(w))) all.push_back(v);
    all.push_back(loss.item());
    all.push_back(default_generator().uniform());
    return all;
  };
  EXPECT_EQ(run(false), run(true));
}

TEST(Checkpoint, KeepsInputsOnlyAndRunsNothingTwiceWhereNothingTrains) {
  Tensor frozen = ones({4});
  int calls = 0;
  auto f = [&](const std::vector<Tensor>& in) {
    ++calls;
    return exp(in[0]) * frozen;
  };
  Tensor y = checkpoint(f, {ones({4})});
  EXPECT_FALSE(requires_grad(y));
  Tensor x = set_requires_grad(ones({4}));
  backward(sum(checkpoint(f, {x}) + y));
  EXPECT_EQ(calls, 3);
}

TEST(Checkpoint, AParameterInsideIsEnough) {
  Tensor w = set_requires_grad(ones({4}));
  Tensor y = checkpoint([&](const std::vector<Tensor>& in) { return in[0] * w; }, {full({4}, 3)});
  backward(sum(y));
  EXPECT_THAT(values(grad(w)), ElementsAre(3, 3, 3, 3));
}

}  // namespace
}  // namespace strata
