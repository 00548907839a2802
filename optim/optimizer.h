// Optimizers: parameters in groups, state keyed by parameter name, the arithmetic in one fused kernel per parameter.
#pragma once

#include <map>
#include <optional>

#include "nn/module.h"

namespace strata::optim {

using nn::NamedTensor;

/// Parameters that share settings; what is not set comes from the optimizer's options.
struct ParamGroup {
  std::vector<NamedTensor> parameters;
  double lr_scale = 1;  // multiplies the scheduled rate
  std::optional<double> weight_decay;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update of every parameter that has a gradient. `grad_scale` multiplies gradients first (clipping).
  void step(double grad_scale = 1);
  void zero_grad();
  /// The base learning rate of the next steps (a schedule sets it).
  void set_lr(double lr) { lr_ = lr; }
  double lr() const { return lr_; }
  int64_t steps_taken() const { return step_; }
  std::vector<NamedTensor> parameters() const;

  /// Moments as "<parameter>.<slot>" tensors; load checks names and shapes and restores the step count.
  std::vector<NamedTensor> state_dict() const;
  void load_state_dict(const std::vector<NamedTensor>& state, int64_t steps_taken);

 protected:
  /// Throws UsageError when there is nothing to train, Error for a name that stands twice.
  Optimizer(std::vector<ParamGroup> groups, double lr);
  virtual void update(const Tensor& parameter, const Tensor& gradient, const std::string& name, double lr,
                      const ParamGroup& group, double grad_scale) = 0;
  /// The parameter's state tensor of that name, zeros at first use.
  Tensor state(const std::string& parameter, const std::string& slot, const Tensor& like);
  /// The slots a complete state has ("exp_avg", ...).
  virtual std::vector<std::string> slots() const = 0;

  int64_t step_ = 0;

 private:
  std::vector<ParamGroup> groups_;
  std::map<std::string, Tensor> state_;
  double lr_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019); PyTorch's defaults.
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<NamedTensor> parameters, AdamWOptions options = {});
  explicit AdamW(std::vector<ParamGroup> groups, AdamWOptions options = {});

 private:
  void update(const Tensor&, const Tensor&, const std::string&, double, const ParamGroup&, double) override;
  std::vector<std::string> slots() const override { return {"exp_avg", "exp_avg_sq"}; }
  AdamWOptions options_;
};

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// Stochastic gradient descent, with momentum (Polyak 1964) or Nesterov's (Sutskever et al. 2013); as PyTorch's SGD.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<NamedTensor> parameters, SgdOptions options = {});
  explicit SGD(std::vector<ParamGroup> groups, SgdOptions options = {});

 private:
  void update(const Tensor&, const Tensor&, const std::string&, double, const ParamGroup&, double) override;
  std::vector<std::string> slots() const override;
  SgdOptions options_;
};

}  // namespace strata::optim
