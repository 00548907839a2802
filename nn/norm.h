// Normalisation layers over the last axis.
#pragma once

#include "nn/module.h"

namespace strata::nn {

class RMSNorm : public Module {
 public:
  explicit RMSNorm(int64_t features, double eps = 1e-5);
  RMSNorm(const Tensor& weight, double eps);
  Tensor forward(const Tensor& x) const;
  Tensor weight;  // [C]

 private:
  double eps_;
};

class LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t features, double eps = 1e-5, bool has_bias = true);
  Tensor forward(const Tensor& x) const;
  Tensor weight;  // [C]
  Tensor bias;    // [C] or undefined

 private:
  double eps_;
};

}  // namespace strata::nn
