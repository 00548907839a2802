#include "optim/optimizer.h"

#include <set>

#include "autograd/autograd.h"
#include "tensor/create.h"
#include "tensor/kernels/optim.h"

namespace strata::optim {

Optimizer::Optimizer(std::vector<ParamGroup> groups, double lr) : groups_(std::move(groups)), lr_(lr) {
  std::set<std::string> names;
  for (const ParamGroup& group : groups_)
    for (const NamedTensor& p : group.parameters) {
      check(names.insert(p.name).second, "optimizer: parameter '{}' is listed twice", p.name);
      check(p.tensor.is_contiguous(), "optimizer: parameter '{}' must be contiguous", p.name);
    }
  check<UsageError>(!names.empty(), "optimizer: no parameter to train; check what is frozen and the adapter's targets");
}

void Optimizer::step(double grad_scale) {
  ++step_;
  for (const ParamGroup& group : groups_)
    for (const NamedTensor& p : group.parameters) {
      Tensor gradient = grad(p.tensor);
      if (!gradient) continue;
      if (!gradient.is_contiguous()) gradient = clone_data(gradient);
      update(p.tensor, gradient, p.name, lr_ * group.lr_scale, group, grad_scale);
    }
}

void Optimizer::zero_grad() {
  for (const ParamGroup& group : groups_)
    for (const NamedTensor& p : group.parameters) set_grad(p.tensor, {});
}

std::vector<NamedTensor> Optimizer::parameters() const {
  std::vector<NamedTensor> all;
  for (const ParamGroup& group : groups_) all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  return all;
}

Tensor Optimizer::state(const std::string& parameter, const std::string& slot, const Tensor& like) {
  Tensor& t = state_[parameter + "." + slot];
  if (!t) {
    MemoryKindScope kind(MemoryKind::optimizer);
    t = zeros_like(like);
  }
  return t;
}

std::vector<NamedTensor> Optimizer::state_dict() const {
  std::vector<NamedTensor> all;
  for (const auto& [name, tensor] : state_) all.push_back({name, tensor});
  return all;
}

void Optimizer::load_state_dict(const std::vector<NamedTensor>& given, int64_t steps_taken) {
  std::map<std::string, Dims> expected;
  for (const NamedTensor& p : parameters())
    for (const std::string& slot : slots()) expected.emplace(p.name + "." + slot, p.tensor.shape());
  std::map<std::string, Tensor> loaded;
  MemoryKindScope kind(MemoryKind::optimizer);
  for (const NamedTensor& s : given) {
    auto it = expected.find(s.name);
    check(it != expected.end(), "optimizer: unexpected state '{}'", s.name);
    check(it->second == s.tensor.shape(), "optimizer: state '{}' must have shape {}, got {}", s.name, it->second,
          s.tensor.shape());
    loaded[s.name] = clone_data(s.tensor);
  }
  for (const auto& [name, shape] : expected)
    check(steps_taken == 0 || loaded.contains(name), "optimizer: state '{}' is missing from the checkpoint", name);
  state_ = std::move(loaded);
  step_ = steps_taken;
}

AdamW::AdamW(std::vector<ParamGroup> groups, AdamWOptions options)
    : Optimizer(std::move(groups), options.lr), options_(options) {}
AdamW::AdamW(std::vector<NamedTensor> parameters, AdamWOptions options)
    : AdamW(std::vector<ParamGroup>{{std::move(parameters), 1, std::nullopt}}, options) {}

void AdamW::update(const Tensor& p, const Tensor& g, const std::string& name, double rate, const ParamGroup& group,
                   double grad_scale) {
  Tensor m = state(name, "exp_avg", p);  // same shape as p
  Tensor v = state(name, "exp_avg_sq", p);
  kernels::AdamWStep step{
      rate,          options_.beta1, options_.beta2, options_.eps, group.weight_decay.value_or(options_.weight_decay),
      steps_taken(), grad_scale};
  kernels::adamw(p.device(), p, g, m, v, step);
}

SGD::SGD(std::vector<ParamGroup> groups, SgdOptions options)
    : Optimizer(std::move(groups), options.lr), options_(options) {
  check<UsageError>(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                    "sgd: nesterov needs momentum > 0 and dampening 0");
}
SGD::SGD(std::vector<NamedTensor> parameters, SgdOptions options)
    : SGD(std::vector<ParamGroup>{{std::move(parameters), 1, std::nullopt}}, options) {}

std::vector<std::string> SGD::slots() const {
  if (options_.momentum == 0) return {};
  return {"momentum_buffer"};
}

void SGD::update(const Tensor& p, const Tensor& g, const std::string& name, double rate, const ParamGroup& group,
                 double grad_scale) {
  Tensor buffer = options_.momentum == 0 ? Tensor() : state(name, "momentum_buffer", p);
  kernels::SgdStep step{rate,
                        options_.momentum,
                        options_.dampening,
                        group.weight_decay.value_or(options_.weight_decay),
                        options_.nesterov,
                        steps_taken() == 1,
                        grad_scale};
  kernels::sgd(p.device(), p, g, buffer, step);
}

}  // namespace strata::optim
