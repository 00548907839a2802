#include "autograd/record.h"

#include "autograd/node.h"

namespace strata {

namespace {
thread_local bool enabled = true;
}  // namespace

NoGrad::NoGrad(bool on) : before_(enabled) {
  enabled = on;
}
NoGrad::~NoGrad() {
  enabled = before_;
}
bool grad_enabled() {
  return enabled;
}

Saved::State::State(Tensor t, bool output) : tensor(std::move(t)), version(0), is_output(output) {
  if (!tensor) return;
  version = tensor.storage()->version();
  tensor.storage()->retain_for_backward();
}

Saved::State::~State() {
  if (tensor) tensor.storage()->release_from_backward();
}

Saved saved(const Tensor& t) {
  return Saved(std::make_shared<Saved::State>(t, false));
}
Saved saved_output(const Tensor& y) {
  return Saved(std::make_shared<Saved::State>(alias(y), true));
}

Tensor Saved::operator()() const {
  const Tensor& t = state_->tensor;
  if (!t) return t;
  Node* node = running_node();
  check(t.storage()->version() == state_->version,
        "{}: a tensor needed for the gradient, shape {}, was written in place after the forward (version {}, expected "
        "{})",
        node ? node->name : "backward", t.shape(), t.storage()->version(), state_->version);
  if (state_->is_output && node && grad_enabled()) {  // create_graph: the output belongs to the graph again
    Tensor with_history = alias(t);
    ensure_meta(with_history).node = node->shared_from_this();
    return with_history;
  }
  return t;
}

namespace detail {

bool wants_gradient(const Tensor& input) {
  if (!input) return false;
  if (grad_enabled()) return requires_grad(input);
  if (bool* probe = checkpoint_probe(); probe && requires_grad(input)) *probe = true;
  return false;
}

namespace {
Edge edge_to(const Tensor& input) {
  if (!input || !requires_grad(input)) return {};
  AutogradMeta* meta = autograd_meta(input);
  Edge edge{meta->node, nullptr, input.shape(), input.dtype()};
  if (!edge.node) edge.leaf = std::static_pointer_cast<AutogradMeta>(input.grad_meta());
  return edge;
}
}  // namespace

Tensor record_terms(const char* name, const Tensor& y, std::vector<Term> terms) {
  if (anomaly_mode()) {
    Node* running = running_node();  // inside backward: the node whose formula runs is what went wrong
    running ? check_finite(y, "gradient", running->name, running->scope)
            : check_finite(y, "output", name, NameScope::current());
  }
  std::shared_ptr<Node> node;
  for (Term& term : terms) {
    if (term.inputs.empty()) continue;
    if (!node) node = std::make_shared<Node>(name, y);
    GradientTerm kept{{}, std::move(term.single), std::move(term.joint)};
    for (const Tensor& input : term.inputs) kept.edges.push_back(edge_to(input));
    node->terms.push_back(std::move(kept));
  }
  if (node) ensure_meta(y).node = std::move(node);
  return y;
}

}  // namespace detail

}  // namespace strata
