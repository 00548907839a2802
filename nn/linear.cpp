#include "nn/linear.h"

#include <cmath>

#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/matmul.h"
#include "nn/init.h"
#include "tensor/create.h"

namespace strata::nn {

Tensor LinearLayer::head_loss(const Tensor& x, const Tensor& targets) const {
  return cross_entropy(forward(x), targets, {.mean = false});
}

Linear::Linear(int64_t in, int64_t out, bool has_bias, Generator& generator) {
  weight = param("weight", empty({out, in}));
  kaiming_uniform_(weight, std::sqrt(5.0), generator);
  if (!has_bias) return;
  bias = param("bias", empty({out}));
  double bound = 1.0 / std::sqrt(static_cast<double>(in));
  uniform_(bias, -bound, bound, generator);
}

Linear::Linear(const Tensor& w, const Tensor& b) {
  check(w.rank() == 2 && (!b || b.shape() == Dims{w.size(0)}),
        "linear: weight must be [out, in] and bias [out], got {} and {}", w.shape(),
        b ? to_string(b.shape()) : "no bias");
  weight = param("weight", w);
  if (b) bias = param("bias", b);
}

Tensor Linear::forward(const Tensor& x) const {
  return linear(x, weight, bias);
}

Tensor Linear::forward_low_rank(const Tensor& x, const Tensor& a, const Tensor& b, double scale) const {
  return linear_low_rank(x, weight, bias, a, b, scale);
}

Tensor Linear::head_loss(const Tensor& x, const Tensor& targets) const {
  return bias ? LinearLayer::head_loss(x, targets) : linear_cross_entropy(x, weight, targets);
}

QuantizedLinear::QuantizedLinear(QuantizedWeight w, const Tensor& b) : weight(std::move(w)) {
  if (b) bias = param("bias", b);
}

Tensor QuantizedLinear::forward(const Tensor& x) const {
  return quantized_linear(x, weight, bias);
}

Tensor QuantizedLinear::head_loss(const Tensor& x, const Tensor& targets) const {
  return bias ? LinearLayer::head_loss(x, targets) : quantized_linear_cross_entropy(x, weight, targets);
}

Tensor QuantizedLinear::forward_low_rank(const Tensor& x, const Tensor& a, const Tensor& b, double scale) const {
  return add_low_rank_(quantized_linear(x, weight, bias), x, a, b, scale);
}

}  // namespace strata::nn
