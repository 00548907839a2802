// The dynamic graph as its users see it: which tensors want gradients, backward, modes, hooks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace strata {

/// Marks a leaf (a parameter or an input) as wanting a gradient. Float dtypes only. Returns t.
const Tensor& set_requires_grad(const Tensor& t, bool requires_grad = true);
/// True for such leaves and for everything computed from them while gradients are enabled.
bool requires_grad(const Tensor& t);
/// The accumulated gradient of a leaf; undefined before the first backward.
Tensor grad(const Tensor& leaf);
/// Replaces (or with an undefined tensor drops) a leaf's gradient.
void set_grad(const Tensor& leaf, const Tensor& gradient);
/// The same values without a graph.
Tensor detach(const Tensor& t);

struct BackwardOptions {
  bool retain_graph = false;  // keep formulas and activations for another backward
  bool create_graph = false;  // record the backward itself, for second derivatives (implies retain_graph)
};

/// Accumulates d(sum of y * dy) / d(leaf) into every leaf y depends on. dy is 1 where y has one element.
void backward(const Tensor& y, const Tensor& dy = {}, BackwardOptions options = {});
/// The gradients of `outputs` (weighted by `output_gradients`, ones if empty) with respect to `inputs` (leaves or
/// intermediate results), without touching any leaf's grad. An input that does not matter yields an undefined tensor.
std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& output_gradients = {}, BackwardOptions options = {});

/// Calls hook(gradient) when t's gradient is known; a defined result replaces it.
void register_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook);

/// While alive, this thread records nothing.
class NoGrad {
 public:
  NoGrad() : NoGrad(false) {}
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 protected:
  explicit NoGrad(bool enabled);

 private:
  bool before_;
};
class EnableGrad : public NoGrad {
 public:
  EnableGrad() : NoGrad(true) {}
};
bool grad_enabled();

/// While alive, every op checks its output, and backward every gradient: the first that holds NaN or infinity
/// throws an Error that names the op and the module it ran in. Slow; for diagnosis.
class AnomalyMode {
 public:
  explicit AnomalyMode(bool on = true);
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

 private:
  bool before_;
};

/// Names the module that runs (for anomaly texts); nests.
class NameScope {
 public:
  explicit NameScope(const std::string& name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  static std::string current();
};

/// Runs f(inputs) without keeping its activations; backward runs it again with the same random numbers and then
/// differentiates. Bit-equal to running f directly. (Chen et al. 2016, "Training deep nets with sublinear memory
/// cost".)
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs);

/// The graph behind y in Graphviz' DOT language.
std::string graph_to_dot(const Tensor& y);
/// Nodes reachable from y.
int64_t graph_size(const Tensor& y);

}  // namespace strata
