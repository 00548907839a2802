// Initial weights of a new decoder: normal with std initializer_range, norms 1, biases 0. Every parameter draws from
// a stream of its own (seed, name).
#pragma once

#include "models/decoder.h"

namespace strata::models {

class RandomWeights : public WeightSource {
 public:
  RandomWeights(uint64_t seed, double std, bool tied) : seed_(seed), std_(std), tied_(tied) {}
  std::shared_ptr<nn::LinearLayer> linear(const std::string& name, int64_t in, int64_t out, bool bias) override;
  std::shared_ptr<nn::EmbeddingLayer> embedding(const std::string& name, int64_t rows, int64_t columns) override;
  std::shared_ptr<nn::RMSNorm> rms_norm(const std::string& name, int64_t features, double eps) override;
  bool has(const std::string& name) const override { return name != "lm_head.weight" || !tied_; }

 private:
  uint64_t seed_;
  double std_;
  bool tied_;
};

}  // namespace strata::models
