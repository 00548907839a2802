#include "autograd/node.h"
#include "tensor/random.h"

namespace strata {

namespace {

struct ProbeScope {
  bool found = false;
  bool* before;
  ProbeScope() : before(checkpoint_probe()) { checkpoint_probe() = &found; }
  ~ProbeScope() {
    checkpoint_probe() = before;
    if (before && found) *before = true;  // nested segments
  }
};

// Runs f again with the generator as it was, and differentiates: leaves inside f collect their gradients directly.
std::vector<Tensor> rerun(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                          const std::vector<Saved>& saved_inputs, const Generator& state, const Tensor& dy,
                          const std::vector<bool>& needs) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < saved_inputs.size(); ++i) {
    Tensor input = detach(saved_inputs[i]());
    if (needs[i]) set_requires_grad(input);
    inputs.push_back(input);
  }
  Generator now = default_generator();
  default_generator() = state;
  {
    EnableGrad on;
    Tensor y = f(inputs);
    if (requires_grad(y)) backward(y, dy);
  }
  default_generator() = now;
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) result.push_back(grad(input));
  return result;
}

}  // namespace

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs) {
  if (!grad_enabled()) return f(inputs);
  Generator state = default_generator();
  ProbeScope probe;
  Tensor y;
  {
    NoGrad off;
    y = f(inputs);
  }
  bool wanted = probe.found;
  for (const Tensor& input : inputs) wanted = wanted || (input && requires_grad(input));
  if (!wanted) return y;  // nothing inside can receive a gradient: never run twice
  y = alias(y);           // f may have returned one of its inputs
  std::vector<Saved> kept;
  for (const Tensor& input : inputs) kept.push_back(saved(input));
  // A leaf that only keeps the node alive: parameters inside f want gradients even if no input does.
  std::vector<Tensor> listed = inputs;
  listed.push_back(set_requires_grad(Tensor(Storage::allocate(0, y.device()), Layout::contiguous({0}), DType::f32)));
  auto formula = [f, kept, state](const Tensor& dy, const std::vector<bool>& needs) {
    std::vector<Tensor> all = rerun(f, kept, state, dy, needs);
    all.emplace_back();
    return all;
  };
  return record("checkpoint", y, joint(listed, formula));
}

}  // namespace strata
