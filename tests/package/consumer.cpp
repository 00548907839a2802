#include <cstdio>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/create.h"

// y = sum((x w)^2) with x = [1 2], w = [3 4]^T: x w = 11, dy/dw = 2 * 11 * x.
int main() {
  strata::Tensor x = strata::from_values<float>({1, 2}, {1, 2});
  strata::Tensor w = strata::set_requires_grad(strata::from_values<float>({3, 4}, {2, 1}));
  strata::Tensor product = strata::matmul(x, w);  // [1, 1]
  strata::backward(strata::sum(product * product));
  if (strata::to_vector<float>(strata::grad(w)) != std::vector<float>{22, 44}) return 1;
  std::puts("consumer: ok");
}
