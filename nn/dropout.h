#pragma once

#include "autograd/ops/dropout.h"
#include "nn/module.h"

namespace strata::nn {

/// Drops with probability p while training(), the identity otherwise.
class Dropout : public Module {
 public:
  explicit Dropout(double p);
  Tensor forward(const Tensor& x) const { return training() && p_ > 0 ? dropout(x, p_) : x; }

 private:
  double p_;
};

}  // namespace strata::nn
