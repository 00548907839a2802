#include "autograd/node.h"

#include <fmt/format.h>

#include <unordered_set>

#include "tensor/kernels/reduce.h"

namespace strata {

namespace {

std::atomic<uint64_t> next_sequence{0};
thread_local bool anomaly = false;
thread_local std::vector<std::string> scopes;

// Nodes waiting to be destroyed. Whoever finds the list idle destroys until it is empty; destructors only append.
thread_local std::vector<std::shared_ptr<Node>> retired;
thread_local bool retiring = false;

}  // namespace

void retire(std::shared_ptr<Node> node) {
  if (!node) return;
  retired.push_back(std::move(node));
  if (retiring) return;
  retiring = true;
  while (!retired.empty()) {
    std::shared_ptr<Node> last = std::move(retired.back());
    retired.pop_back();
  }
  retiring = false;
}

AutogradMeta::~AutogradMeta() {
  retire(std::move(node));
}

Node::Node(const char* n, const Tensor& y)
    : name(n),
      scope(anomaly ? NameScope::current() : std::string()),
      sequence(next_sequence.fetch_add(1, std::memory_order_relaxed)),
      shape(y.shape()),
      dtype(y.dtype()),
      device(y.device()) {}

Node::~Node() {
  release();
}

void Node::release() {
  released = true;
  for (GradientTerm& term : terms)
    for (Edge& edge : term.edges) retire(std::move(edge.node));
  terms.clear();
}

AutogradMeta* autograd_meta(const Tensor& t) {
  return static_cast<AutogradMeta*>(t.grad_meta().get());
}

AutogradMeta& ensure_meta(const Tensor& t) {
  if (!t.grad_meta()) t.set_grad_meta(std::make_shared<AutogradMeta>());
  return *autograd_meta(t);
}

Node*& running_node() {
  thread_local Node* node = nullptr;
  return node;
}

bool*& checkpoint_probe() {
  thread_local bool* probe = nullptr;
  return probe;
}

bool anomaly_mode() {
  return anomaly;
}
AnomalyMode::AnomalyMode(bool on) : before_(anomaly) {
  anomaly = on;
}
AnomalyMode::~AnomalyMode() {
  anomaly = before_;
}

NameScope::NameScope(const std::string& name) {
  scopes.push_back(name);
}
NameScope::~NameScope() {
  scopes.pop_back();
}
std::string NameScope::current() {
  return scopes.empty() ? "" : scopes.back();
}

void check_finite(const Tensor& t, const char* what, const char* op, const std::string& scope) {
  if (!is_floating(t.dtype()) || t.numel() == 0) return;
  bool finite = true;
  kernels::all_finite(t.device(), t, finite);
  check(finite, "anomaly: {} of '{}' holds NaN or infinity (shape {}){}", what, op, t.shape(),
        scope.empty() ? "" : " in " + scope);
}

const Tensor& set_requires_grad(const Tensor& t, bool wants) {
  check(!wants || is_floating(t.dtype()), "set_requires_grad: expected a floating dtype, got {}",
        dtype_name(t.dtype()));
  AutogradMeta& meta = ensure_meta(t);
  check(!meta.node, "set_requires_grad: only leaves can be marked; detach() a result first");
  meta.requires_grad = wants;
  return t;
}

bool requires_grad(const Tensor& t) {
  AutogradMeta* meta = autograd_meta(t);
  return meta && (meta->requires_grad || meta->node);
}

Tensor grad(const Tensor& leaf) {
  AutogradMeta* meta = autograd_meta(leaf);
  return meta ? meta->grad : Tensor();
}

void set_grad(const Tensor& leaf, const Tensor& gradient) {
  check(!gradient || gradient.shape() == leaf.shape(), "set_grad: expected shape {}, got {}", leaf.shape(),
        gradient ? gradient.shape() : Dims());
  ensure_meta(leaf).grad = gradient;
}

Tensor detach(const Tensor& t) {
  return alias(t);
}

void register_hook(const Tensor& t, GradientHook hook) {
  check(requires_grad(t), "register_hook: the tensor wants no gradient");
  AutogradMeta& meta = ensure_meta(t);
  (meta.node ? meta.node->hooks : meta.hooks).push_back(std::move(hook));
}

namespace {

// Visits every node behind y once, without recursion.
template <class F>
void for_each_node(const Tensor& y, F&& visit) {
  std::vector<Node*> stack;
  std::unordered_set<Node*> seen;
  if (AutogradMeta* meta = autograd_meta(y); meta && meta->node) stack.push_back(meta->node.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    visit(*node);
    for (GradientTerm& term : node->terms)
      for (Edge& edge : term.edges)
        if (edge.node) stack.push_back(edge.node.get());
  }
}

}  // namespace

int64_t graph_size(const Tensor& y) {
  int64_t count = 0;
  for_each_node(y, [&](Node&) { ++count; });
  return count;
}

std::string graph_to_dot(const Tensor& y) {
  std::string dot = "digraph strata {\n  node [shape=box, fontname=\"monospace\"];\n";
  std::unordered_set<const void*> leaves;
  for_each_node(y, [&](Node& node) {
    dot += fmt::format("  n{} [label=\"{}\\n{}{}\"];\n", node.sequence, node.name, dtype_name(node.dtype),
                       to_string(node.shape));
    for (GradientTerm& term : node.terms)
      for (Edge& edge : term.edges) {
        if (edge.node) dot += fmt::format("  n{} -> n{};\n", edge.node->sequence, node.sequence);
        if (!edge.leaf) continue;
        std::string leaf = fmt::format("leaf{}", fmt::ptr(edge.leaf.get()));
        if (leaves.insert(edge.leaf.get()).second)
          dot += fmt::format("  \"{}\" [label=\"leaf\\n{}{}\", style=filled];\n", leaf, dtype_name(edge.dtype),
                             to_string(edge.shape));
        dot += fmt::format("  \"{}\" -> n{};\n", leaf, node.sequence);
      }
  });
  return dot + "}\n";
}

}  // namespace strata
