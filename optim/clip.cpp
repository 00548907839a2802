#include "optim/clip.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "tensor/create.h"
#include "tensor/kernels/optim.h"

namespace strata::optim {

double grad_norm(const std::vector<nn::NamedTensor>& parameters) {
  double total = 0;
  for (const auto& p : parameters) {
    Tensor g = grad(p.tensor);
    if (!g) continue;
    double squares = 0;
    kernels::sum_of_squares(g.device(), g.is_contiguous() ? g : clone_data(g), squares);
    total += squares;
  }
  return std::sqrt(total);
}

double clip_grad_norm(const std::vector<nn::NamedTensor>& parameters, double max_norm) {
  check(max_norm > 0, "clip_grad_norm: max_norm must be positive, got {}", max_norm);
  double norm = grad_norm(parameters);
  if (norm > max_norm && std::isfinite(norm)) {
    NoGrad off;
    for (const auto& p : parameters)
      if (Tensor g = grad(p.tensor)) mul_(g, max_norm / norm);
  }
  return norm;
}

}  // namespace strata::optim
