#include "models/random_weights.h"

#include "tensor/create.h"

namespace strata::models {

std::shared_ptr<nn::LinearLayer> RandomWeights::linear(const std::string& name, int64_t in, int64_t out, bool bias) {
  Generator generator(derive_seed(seed_, name + ".weight"));
  Tensor w = empty({out, in});
  normal_(w, 0, std_, generator);
  return std::make_shared<nn::Linear>(w, bias ? zeros({out}) : Tensor());
}

std::shared_ptr<nn::EmbeddingLayer> RandomWeights::embedding(const std::string& name, int64_t rows, int64_t columns) {
  Generator generator(derive_seed(seed_, name + ".weight"));
  return std::make_shared<nn::Embedding>(rows, columns, std_, generator);
}

std::shared_ptr<nn::RMSNorm> RandomWeights::rms_norm(const std::string&, int64_t features, double eps) {
  return std::make_shared<nn::RMSNorm>(features, eps);
}

}  // namespace strata::models
