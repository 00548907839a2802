// y = x w^T + b, with the weight dense or block-quantised.
#pragma once

#include "autograd/ops/quant.h"
#include "nn/module.h"
#include "tensor/random.h"

namespace strata::nn {

/// What a model holds where it needs a linear map [..., in] -> [..., out].
class LinearLayer : public Module {
 public:
  virtual Tensor forward(const Tensor& x) const = 0;
  virtual int64_t in_features() const = 0;
  virtual int64_t out_features() const = 0;
  /// Sum over counted targets of the negative log likelihood under forward(x) as logits; they are never kept whole.
  virtual Tensor head_loss(const Tensor& x, const Tensor& targets) const;
  /// Adds scale * (x A^T) B^T to the layer's output, A [r, in], B [out, r]: LoRA's forward in one op.
  virtual Tensor forward_low_rank(const Tensor& x, const Tensor& a, const Tensor& b, double scale) const = 0;
};

class Linear : public LinearLayer {
 public:
  /// Kaiming-uniform weight as PyTorch's default; bias uniform in +-1 / sqrt(in).
  Linear(int64_t in, int64_t out, bool has_bias, Generator& generator);
  /// On existing tensors: weight [out, in], bias [out] or undefined.
  Linear(const Tensor& weight, const Tensor& bias);

  Tensor forward(const Tensor& x) const override;
  Tensor head_loss(const Tensor& x, const Tensor& targets) const override;
  Tensor forward_low_rank(const Tensor& x, const Tensor& a, const Tensor& b, double scale) const override;
  int64_t in_features() const override { return weight.size(1); }
  int64_t out_features() const override { return weight.size(0); }

  Tensor weight;
  Tensor bias;  // may be undefined
};

/// A frozen, block-quantised weight; the gradient flows to x only.
class QuantizedLinear : public LinearLayer {
 public:
  explicit QuantizedLinear(QuantizedWeight weight, const Tensor& bias = {});

  Tensor forward(const Tensor& x) const override;
  Tensor head_loss(const Tensor& x, const Tensor& targets) const override;
  Tensor forward_low_rank(const Tensor& x, const Tensor& a, const Tensor& b, double scale) const override;
  int64_t in_features() const override { return weight.columns; }
  int64_t out_features() const override { return weight.rows; }

  QuantizedWeight weight;
  Tensor bias;
};

}  // namespace strata::nn
