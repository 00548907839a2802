#include <cstdio>
#include <vector>

#include "tensor/create.h"

int main() {
  strata::Tensor x = strata::full({2, 3}, 1.5);  // [2, 3]
  strata::copy_(x, strata::from_values<float>({1, 2, 3}, {3}));
  if (strata::to_vector<double>(x) != std::vector<double>{1, 2, 3, 1, 2, 3}) return 1;
  std::puts("consumer: ok");
}
