#include "nn/embedding.h"

#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "tensor/create.h"

namespace strata::nn {

Embedding::Embedding(int64_t rows, int64_t columns, double std, Generator& generator) {
  weight = param("weight", empty({rows, columns}));
  normal_(weight, 0, std, generator);
}

Embedding::Embedding(const Tensor& w) {
  check(w.rank() == 2, "embedding: weight must be [rows, columns], got {}", w.shape());
  weight = param("weight", w);
}

Tensor Embedding::forward(const Tensor& ids) const {
  return embedding(weight, ids);
}
Tensor Embedding::as_head(const Tensor& x) const {
  return linear(x, weight);
}
Tensor Embedding::head_loss(const Tensor& x, const Tensor& targets) const {
  return linear_cross_entropy(x, weight, targets);
}

Tensor QuantizedEmbedding::forward(const Tensor& ids) const {
  return quantized_embedding(weight, ids);
}
Tensor QuantizedEmbedding::as_head(const Tensor& x) const {
  return quantized_linear(x, weight);
}
Tensor QuantizedEmbedding::head_loss(const Tensor& x, const Tensor& targets) const {
  return quantized_linear_cross_entropy(x, weight, targets);
}

}  // namespace strata::nn
