// Rows of a table by id, the table dense or block-quantised; and the output head that may share it.
#pragma once

#include "nn/linear.h"

namespace strata::nn {

/// ids [...] -> [..., C].
class EmbeddingLayer : public Module {
 public:
  virtual Tensor forward(const Tensor& ids) const = 0;
  /// x [N, C] -> logits [N, V] with the table as the weight of a linear map (tied head).
  virtual Tensor as_head(const Tensor& x) const = 0;
  /// Sum of the negative log likelihoods of `targets` under as_head(x), without keeping the logits.
  virtual Tensor head_loss(const Tensor& x, const Tensor& targets) const = 0;
  virtual int64_t rows() const = 0;
};

class Embedding : public EmbeddingLayer {
 public:
  /// N(0, std) values.
  Embedding(int64_t rows, int64_t columns, double std, Generator& generator);
  explicit Embedding(const Tensor& weight);
  Tensor forward(const Tensor& ids) const override;
  Tensor as_head(const Tensor& x) const override;
  Tensor head_loss(const Tensor& x, const Tensor& targets) const override;
  int64_t rows() const override { return weight.size(0); }

  Tensor weight;
};

class QuantizedEmbedding : public EmbeddingLayer {
 public:
  explicit QuantizedEmbedding(QuantizedWeight w) : weight(std::move(w)) {}
  Tensor forward(const Tensor& ids) const override;
  Tensor as_head(const Tensor& x) const override;
  Tensor head_loss(const Tensor& x, const Tensor& targets) const override;
  int64_t rows() const override { return weight.rows; }

  QuantizedWeight weight;
};

}  // namespace strata::nn
