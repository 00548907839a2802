#include "nn/lora.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/matmul.h"
#include "nn/init.h"
#include "tensor/create.h"

namespace strata::nn {

double LoraOptions::scale() const {
  auto rank = static_cast<double>(r);
  return alpha / (use_rslora ? std::sqrt(rank) : rank);
}

LoraLinear::LoraLinear(std::shared_ptr<LinearLayer> base, const LoraOptions& options, Generator& generator)
    : base_shared_(base),
      base_(child<LinearLayer>("", base)),
      dropout_(child<Dropout>("lora_dropout", std::make_shared<Dropout>(options.dropout))),
      options_(options),
      scale_(options.scale()) {
  int64_t most = std::min(base->in_features(), base->out_features());
  check<UsageError>(options.r >= 1, "lora: rank must be at least 1, got {}", options.r);
  check<UsageError>(options.r <= most * 8, "lora: rank {} makes no sense for a {} x {} layer", options.r,
                    base->out_features(), base->in_features());
  base->freeze();
  a = param("lora_A.weight", empty({options.r, base->in_features()}));
  b = param("lora_B.weight", zeros({base->out_features(), options.r}));
  kaiming_uniform_(a, std::sqrt(5.0), generator);
}

Tensor LoraLinear::forward(const Tensor& x) const {
  if (!enabled_) return base_->forward(x);
  if (training() && options_.dropout > 0)  // the base sees x itself, the low-rank term the dropped one
    return add_low_rank_(base_->forward(x), dropout_->forward(x), a, b, scale_);
  return base_->forward_low_rank(x, a, b, scale_);
}

Tensor LoraLinear::forward_low_rank(const Tensor& x, const Tensor& a2, const Tensor& b2, double scale2) const {
  return add_low_rank_(forward(x), x, a2, b2, scale2);  // adapters stack
}

}  // namespace strata::nn
