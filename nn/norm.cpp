#include "nn/norm.h"

#include "autograd/ops/norm.h"
#include "tensor/create.h"

namespace strata::nn {

RMSNorm::RMSNorm(int64_t features, double eps) : RMSNorm(ones({features}), eps) {}
RMSNorm::RMSNorm(const Tensor& w, double eps) : weight(param("weight", w)), eps_(eps) {}
Tensor RMSNorm::forward(const Tensor& x) const {
  return rms_norm(x, weight, eps_);
}

LayerNorm::LayerNorm(int64_t features, double eps, bool has_bias)
    : weight(param("weight", ones({features}))), eps_(eps) {
  if (has_bias) bias = param("bias", zeros({features}));
}
Tensor LayerNorm::forward(const Tensor& x) const {
  return layer_norm(x, weight, bias, eps_);
}

}  // namespace strata::nn
