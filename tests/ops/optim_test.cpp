#include "tensor/kernels/optim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/allocator.h"
#include "tensor/create.h"
#include "tensor/parallel.h"
#include "tensor/random.h"

namespace strata {
namespace {

using kernels::AdamWStep;
using kernels::SgdStep;

constexpr int64_t kCount = 40000;  // several threads' worth
constexpr int kSteps = 50;

Tensor f64(std::vector<double> values) {
  return from_values(values, {static_cast<int64_t>(values.size())});
}

Tensor start(DType dtype) {
  Generator generator(1);
  return clone_data(randn({kCount}, generator), dtype);
}

Tensor gradient_of_step(int step, DType dtype) {
  Generator generator(100 + static_cast<uint64_t>(step));
  return clone_data(randn({kCount}, generator), dtype);
}

void expect_near(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  auto values = to_vector<double>(got);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

// Three steps of torch 2.15.0 in f64 on p = [0.5, -1, 2], gradient [0.1 t, -0.2, 0.3 / t].
template <class Step>
std::vector<double> three_steps(Step&& step) {
  Tensor p = f64({0.5, -1, 2});
  for (int t = 1; t <= 3; ++t) step(p, f64({0.1 * t, -0.2, 0.3 / t}), t);
  return to_vector<double>(p);
}

void expect_values(const std::vector<double>& got, const std::vector<double>& expected) {
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-14);
}

TEST(Optim, AdamWGivesTorchsNumbers) {
  Tensor m = f64({0, 0, 0}), v = f64({0, 0, 0});
  expect_values(three_steps([&](const Tensor& p, const Tensor& g, int t) {
                  kernels::adamw(Device::cpu(), p, g, m, v, AdamWStep{0.1, 0.9, 0.95, 1e-8, 0.1, t});
                }),
                {0.19784793395563877, -0.6732890148504993, 1.6608206356986694});
}

TEST(Optim, SgdGivesTorchsNumbers) {
  struct Case {
    double momentum, dampening;
    bool nesterov;
    std::vector<double> expected;
  };
  for (const Case& c : {Case{0, 0, false, {0.4385414895, -0.937062979, 1.9390809679999998}},
                        Case{0.9, 0.2, false, {0.41603003327999993, -0.89444726656, 1.87794813952}},
                        Case{0.9, 0, true, {0.35056756198049993, -0.8312629239609999, 1.8214726865120001}}}) {
    Tensor buffer =
        c.momentum > 0 ? full({3}, std::numeric_limits<double>::quiet_NaN(), {DType::f64, Device::cpu()}) : Tensor();
    expect_values(
        three_steps([&](const Tensor& p, const Tensor& g, int t) {
          kernels::sgd(Device::cpu(), p, g, buffer, SgdStep{0.1, c.momentum, c.dampening, 0.01, c.nesterov, t == 1});
        }),
        c.expected);
  }
}

struct Types {
  DType parameter, gradient;
  double tolerance;
};
constexpr Types kTypes[] = {{DType::f64, DType::f64, 1e-13},
                            {DType::f32, DType::f32, 2e-5},
                            {DType::f32, DType::bf16, 2e-5},
                            {DType::f32, DType::f16, 2e-5}};

TEST(Optim, AdamWFollowsTheFormulaOverFiftySteps) {
  for (Types types : kTypes) {
    Tensor p = start(types.parameter), m = zeros_like(p), v = zeros_like(p);
    std::vector<double> rp = to_vector<double>(p), rm(kCount), rv(kCount);
    for (int t = 1; t <= kSteps; ++t) {
      Tensor g = gradient_of_step(t, types.gradient);
      AdamWStep s{0.01 / t, 0.9, 0.999, 1e-8, 0.1, t, 0.5};
      kernels::adamw(Device::cpu(), p, g, m, v, s);
      auto rg = to_vector<double>(g);
      for (size_t i = 0; i < rp.size(); ++i) {
        double x = 0.5 * rg[i];
        rp[i] *= 1 - s.lr * 0.1;
        rm[i] = 0.9 * rm[i] + (1 - 0.9) * x;
        rv[i] = 0.999 * rv[i] + (1 - 0.999) * x * x;
        double mean = rm[i] / (1 - std::pow(0.9, t)), square = rv[i] / (1 - std::pow(0.999, t));
        rp[i] -= s.lr * mean / (std::sqrt(square) + 1e-8);
      }
    }
    SCOPED_TRACE(dtype_name(types.gradient));
    expect_near(p, rp, types.tolerance);
    expect_near(m, rm, types.tolerance);
    expect_near(v, rv, types.tolerance);
  }
}

TEST(Optim, SgdFollowsTheFormulaOverFiftySteps) {
  for (Types types : kTypes)
    for (bool nesterov : {false, true}) {
      double dampening = nesterov ? 0 : 0.3;
      Tensor p = start(types.parameter), buffer = empty_like(p);
      std::vector<double> rp = to_vector<double>(p), rb(kCount);
      for (int t = 1; t <= kSteps; ++t) {
        Tensor g = gradient_of_step(t, types.gradient);
        kernels::sgd(Device::cpu(), p, g, buffer, SgdStep{0.02, 0.8, dampening, 0.05, nesterov, t == 1, 0.25});
        auto rg = to_vector<double>(g);
        for (size_t i = 0; i < rp.size(); ++i) {
          double x = 0.25 * rg[i] + 0.05 * rp[i];
          rb[i] = t == 1 ? x : 0.8 * rb[i] + (1 - dampening) * x;
          rp[i] -= 0.02 * (nesterov ? x + 0.8 * rb[i] : rb[i]);
        }
      }
      SCOPED_TRACE(dtype_name(types.gradient));
      expect_near(p, rp, types.tolerance);
      expect_near(buffer, rb, types.tolerance);
    }
}

TEST(Optim, SumOfSquaresInDoubleWhateverTheThreads) {
  int before = num_threads();
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (int64_t n : {0, 1, 7, 4096, 4097, 100003}) {
      Generator generator(3);
      Tensor g = clone_data(randn({n}, generator), dtype);
      double expected = 0, one = -1, two = -1;
      for (double x : to_vector<double>(g)) expected += x * x;
      set_num_threads(1);
      kernels::sum_of_squares(Device::cpu(), g, one);
      set_num_threads(2);
      kernels::sum_of_squares(Device::cpu(), g, two);
      EXPECT_NEAR(one, expected, 1e-13 * expected);
      EXPECT_EQ(one, two);
    }
  // 1e8 + 1: f32 sums would lose the one.
  double sum = 0;
  kernels::sum_of_squares(Device::cpu(), from_values({10000.0f, 1.0f}, {2}), sum);
  EXPECT_EQ(sum, 100000001.0);
  set_num_threads(before);
}

TEST(Optim, ThreadsDoNotChangeABit) {
  int before = num_threads();
  std::vector<float> results[2];
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    Tensor p = start(DType::f32), m = zeros_like(p), v = zeros_like(p), buffer = zeros_like(p);
    for (int t = 1; t <= 3; ++t) {
      kernels::adamw(Device::cpu(), p, gradient_of_step(t, DType::f32), m, v, AdamWStep{0.1, 0.9, 0.99, 1e-8, 0.1, t});
      kernels::sgd(Device::cpu(), p, gradient_of_step(t, DType::f32), buffer, SgdStep{0.1, 0.9, 0, 0.1, true, t == 1});
    }
    results[threads - 1] = to_vector<float>(p);
  }
  EXPECT_EQ(results[0], results[1]);
  set_num_threads(before);
}

}  // namespace
}  // namespace strata
