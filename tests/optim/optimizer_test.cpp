#include "optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "optim/training/step.h"
#include "tensor/allocator.h"
#include "tensor/create.h"

namespace strata::optim {
namespace {

using testing::HasSubstr;

NamedTensor parameter(const std::string& name, std::initializer_list<double> values) {
  return {name, set_requires_grad(from_values<double>(values, {static_cast<int64_t>(values.size())}))};
}

TEST(AdamW, FollowsThePaperStepByStep) {
  NamedTensor p = parameter("w", {1, -2});
  AdamW optimizer({p}, {.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6, .weight_decay = 0.05});
  double w[2] = {1, -2}, m[2] = {}, v[2] = {};
  for (int t = 1; t <= 20; ++t) {
    optimizer.zero_grad();
    backward(sum(p.tensor * p.tensor * p.tensor));
    optimizer.step();
    for (int i = 0; i < 2; ++i) {
      double g = 3 * w[i] * w[i];
      w[i] *= 1 - 0.1 * 0.05;
      m[i] = 0.8 * m[i] + 0.2 * g;
      v[i] = 0.9 * v[i] + 0.1 * g * g;
      w[i] -= 0.1 * (m[i] / (1 - std::pow(0.8, t))) / (std::sqrt(v[i] / (1 - std::pow(0.9, t))) + 1e-6);
    }
    EXPECT_NEAR(to_vector<double>(p.tensor)[0], w[0], 1e-12) << t;
    EXPECT_NEAR(to_vector<double>(p.tensor)[1], w[1], 1e-12) << t;
  }
}

TEST(Sgd, MomentumAndNesterov) {
  for (bool nesterov : {false, true}) {
    NamedTensor p = parameter("w", {3});
    SGD optimizer({p}, {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = nesterov});
    double w = 3, buffer = 0;
    for (int t = 0; t < 10; ++t) {
      optimizer.zero_grad();
      backward(sum(p.tensor * p.tensor));
      optimizer.step();
      double g = 2 * w + 0.1 * w;
      buffer = t == 0 ? g : 0.9 * buffer + g;
      w -= 0.05 * (nesterov ? g + 0.9 * buffer : buffer);
      EXPECT_NEAR(p.tensor.item(), w, 1e-12);
    }
  }
  EXPECT_THROW(SGD({parameter("w", {1})}, {.nesterov = true}), UsageError);
}

TEST(Optimizer, GroupsHaveTheirOwnRateAndDecay) {
  NamedTensor a = parameter("a", {1}), b = parameter("b", {1});
  SGD optimizer(std::vector<ParamGroup>{{{a}, 1, std::nullopt}, {{b}, 10, 0.0}}, {.lr = 0.01, .weight_decay = 1});
  backward(sum(a.tensor + b.tensor));
  optimizer.step();
  EXPECT_NEAR(a.tensor.item(), 1 - 0.01 * 2, 1e-12);
  EXPECT_NEAR(b.tensor.item(), 1 - 0.1 * 1, 1e-12);
}

TEST(Optimizer, NothingToTrainIsAnError) {
  EXPECT_THROW(AdamW(std::vector<NamedTensor>{}), UsageError);
  NamedTensor p = parameter("w", {1});
  EXPECT_THROW(AdamW({p, p}), Error);
}

TEST(Optimizer, StateGoesOnWhereItStopped) {
  auto steps = [](NamedTensor& p, AdamW& optimizer, int n) {
    for (int i = 0; i < n; ++i) {
      optimizer.zero_grad();
      backward(sum(p.tensor * p.tensor));
      optimizer.step();
    }
  };
  NamedTensor whole = parameter("w", {1, 2, 3});
  AdamW one({whole}, {.lr = 0.1});
  steps(whole, one, 8);
  NamedTensor first = parameter("w", {1, 2, 3});
  AdamW before({first}, {.lr = 0.1});
  steps(first, before, 5);
  NamedTensor second{"w", set_requires_grad(clone_data(first.tensor))};
  AdamW after({second}, {.lr = 0.1});
  after.load_state_dict(before.state_dict(), before.steps_taken());
  steps(second, after, 3);
  EXPECT_EQ(to_vector<double>(second.tensor), to_vector<double>(whole.tensor));
  EXPECT_THROW(after.load_state_dict({}, 5), Error);
  EXPECT_THROW(after.load_state_dict({{"x.exp_avg", ones({3})}}, 5), Error);
}

TEST(Clip, ReportsTheNormBeforeClipping) {
  NamedTensor p = parameter("w", {0, 0});
  set_grad(p.tensor, from_values<double>({3, 4}, {2}));
  EXPECT_DOUBLE_EQ(clip_grad_norm({p}, 1.0), 5);
  EXPECT_NEAR(to_vector<double>(grad(p.tensor))[0], 0.6, 1e-12);
  EXPECT_NEAR(to_vector<double>(grad(p.tensor))[1], 0.8, 1e-12);
  // Gradients of a loss scaled by 1024: unscale first, then clip (one norm over everything).
  set_grad(p.tensor, from_values<double>({3 * 1024, 4 * 1024}, {2}));
  mul_(grad(p.tensor), 1.0 / 1024);
  EXPECT_DOUBLE_EQ(clip_grad_norm({p}, 1.0), 5);
  EXPECT_NEAR(to_vector<double>(grad(p.tensor))[0], 0.6, 1e-12);
}

TEST(Schedule, PeakAtTheEndOfWarmUpAndFinalRateAtTheLastStep) {
  ScheduleOptions o{.peak = 2e-4, .final_fraction = 0.1, .warmup = 10, .total = 100};
  for (auto schedule : {cosine, linear}) {
    EXPECT_DOUBLE_EQ(schedule(1, o), 2e-5);
    EXPECT_DOUBLE_EQ(schedule(10, o), 2e-4);
    EXPECT_LT(schedule(11, o), 2e-4);
    EXPECT_NEAR(schedule(100, o), 2e-5, 1e-18);
    for (int64_t s = 11; s <= 100; ++s) EXPECT_LE(schedule(s, o), schedule(s - 1, o));
  }
  EXPECT_NEAR(cosine(55, o), 2e-4 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_DOUBLE_EQ(constant(77, o), 2e-4);
  EXPECT_DOUBLE_EQ(cosine(1, {.peak = 1, .warmup = 0, .total = 1}), 0);
  EXPECT_THROW(schedule_named("cosin"), UsageError);
}

// A loss with a chosen value and gradient: sum(w * c).
MicroBatch part(const Tensor& w, double value, int64_t counted) {
  return {[w, value] { return sum(w * value); }, counted};
}

TEST(TrainStep, MeanOverAllCountedTokensOfTheStep) {
  // Micro-batch A: 1 counted token of loss 4; B: 3 counted tokens of loss 1 each.
  NamedTensor p = parameter("w", {1});
  StepResult r = accumulate_gradients({part(p.tensor, 4, 1), part(p.tensor, 3, 3)});
  EXPECT_DOUBLE_EQ(r.loss, 1.75);
  EXPECT_DOUBLE_EQ(grad(p.tensor).item(), 1.75);
  EXPECT_EQ(r.counted, 4);
}

TEST(TrainStep, AStepThatCountsNothingChangesNothing) {
  NamedTensor p = parameter("w", {1, 2});
  AdamW optimizer({p}, {.lr = 0.1, .weight_decay = 0.5});
  train_step(optimizer, {part(p.tensor, 1, 1)}, 1);
  auto weights = to_vector<double>(p.tensor);
  auto moment = to_vector<double>(optimizer.state_dict()[0].tensor);
  StepResult r = train_step(optimizer, {part(p.tensor, 5, 0), part(p.tensor, 7, 0)}, 1);
  EXPECT_TRUE(r.skipped);
  EXPECT_EQ(r.counted, 0);
  EXPECT_EQ(to_vector<double>(p.tensor), weights);
  EXPECT_EQ(to_vector<double>(optimizer.state_dict()[0].tensor), moment);
  EXPECT_EQ(optimizer.steps_taken(), 1);
  // An all-masked micro-batch adds 0 to the sum and 0 to the count.
  optimizer.zero_grad();
  StepResult mixed = accumulate_gradients({part(p.tensor, 100, 0), part(p.tensor, 2, 2)});
  EXPECT_DOUBLE_EQ(mixed.loss, (weights[0] + weights[1]) * 2 / 2);
}

TEST(TrainStep, StopsAtNaNNamingTheOpAndKeepsTheWeights) {
  NamedTensor p = parameter("w", {1, 0});
  AdamW optimizer({p}, {.lr = 0.1});
  auto bad = MicroBatch{[&] {
                          NameScope scope("model.layers.1");
                          return sum(log(p.tensor - 1.0));
                        },
                        1};
  try {
    train_step(optimizer, {bad}, 1);
    FAIL();
  } catch (const Diverged& e) {
    EXPECT_THAT(e.what(), HasSubstr("output of 'log'"));
    EXPECT_THAT(e.what(), HasSubstr("model.layers.1"));
  }
  EXPECT_EQ(to_vector<double>(p.tensor), (std::vector<double>{1, 0}));
  EXPECT_EQ(optimizer.steps_taken(), 0);
}

TEST(TrainStep, FirstStepOnPoisonedMemory) {
  allocator::set_poison(true);
  NamedTensor p{"w", set_requires_grad(full({4096}, 0.5))};
  AdamW optimizer({p}, {.lr = 0.1, .weight_decay = 0});
  std::vector<MicroBatch> eight(8, MicroBatch{[&] { return sum(p.tensor * p.tensor); }, 4096});
  StepResult r = train_step(optimizer, eight, 0);
  allocator::set_poison(false);
  EXPECT_FLOAT_EQ(static_cast<float>(r.loss), 0.25f);
  for (float v : to_vector<float>(p.tensor)) ASSERT_NEAR(v, 0.4f, 1e-5);
}

}  // namespace
}  // namespace strata::optim
