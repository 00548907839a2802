// LoRA (Hu et al. 2021): a frozen linear layer plus a trained low-rank term, y = base(x) + s (drop(x) A^T) B^T,
// s = alpha / r, or alpha / sqrt(r) with rank-stabilised scaling (Kalajdzievski 2023).
#pragma once

#include "nn/dropout.h"
#include "nn/linear.h"

namespace strata::nn {

struct LoraOptions {
  int64_t r = 8;
  double alpha = 8;
  double dropout = 0;
  bool use_rslora = false;
  double scale() const;
};

/// Wraps a LinearLayer. Parameter names: the base's own, and lora_A.weight [r, in], lora_B.weight [out, r].
class LoraLinear : public LinearLayer {
 public:
  /// A Kaiming-uniform (a = sqrt 5), B zero: the wrapped layer starts as the base. Freezes the base.
  LoraLinear(std::shared_ptr<LinearLayer> base, const LoraOptions& options, Generator& generator);

  Tensor forward(const Tensor& x) const override;
  Tensor forward_low_rank(const Tensor& x, const Tensor& a, const Tensor& b, double scale) const override;
  int64_t in_features() const override { return base_->in_features(); }
  int64_t out_features() const override { return base_->out_features(); }

  /// Off: forward gives the base alone (for comparing, and as DPO's reference).
  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }
  double scale() const { return scale_; }
  const LoraOptions& options() const { return options_; }
  std::shared_ptr<LinearLayer> base() const { return base_shared_; }

  Tensor a;  // lora_A.weight [r, in]
  Tensor b;  // lora_B.weight [out, r]

 private:
  std::shared_ptr<LinearLayer> base_shared_;
  Child<LinearLayer> base_;
  Child<Dropout> dropout_;
  LoraOptions options_;
  double scale_;
  bool enabled_ = true;
};

}  // namespace strata::nn
