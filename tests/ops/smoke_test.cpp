#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/create.h"

namespace strata {
namespace {

TEST(Ops, GradientOfAnExpression) {
  Tensor x = from_values({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3});
  Tensor w = from_values({0.5, -1.0, 2.0}, {3});
  set_requires_grad(x);
  set_requires_grad(w);
  Tensor y = sum(transpose(x * w) * x.numel() + 1.0);
  EXPECT_DOUBLE_EQ(y.item(), 6 * (5 * 0.5 - 7 * 1.0 + 9 * 2.0) + 6);
  backward(y);
  EXPECT_EQ(to_vector<double>(grad(x)), (std::vector<double>{3, -6, 12, 3, -6, 12}));
  EXPECT_EQ(to_vector<double>(grad(w)), (std::vector<double>{30, 42, 54}));
}

TEST(Ops, SecondDerivative) {
  Tensor x = from_values({0.5, -1.5}, {2});
  set_requires_grad(x);
  Tensor first = gradients({sum(x * x * x)}, {x}, {}, {.create_graph = true})[0];
  Tensor second = gradients({sum(first)}, {x})[0];
  EXPECT_EQ(to_vector<double>(first), (std::vector<double>{0.75, 6.75}));
  EXPECT_EQ(to_vector<double>(second), (std::vector<double>{3, -9}));
}

}  // namespace
}  // namespace strata
