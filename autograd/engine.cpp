// Backward: nodes in order of falling sequence number, which is a topological order because a result is created
// after everything it was computed from. Each node's gradient is complete when its turn comes.
#include <queue>
#include <unordered_map>

#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/create.h"
#include "tensor/kernels/pointwise.h"

namespace strata {

namespace {

class Engine {
 public:
  Engine(BackwardOptions options, bool into_leaves) : options_(options), into_leaves_(into_leaves) {}

  void seed(const Tensor& y, const Tensor& dy) {
    AutogradMeta* meta = autograd_meta(y);
    if (meta->node)
      add(meta->node, dy);
    else
      add_to_leaf(std::static_pointer_cast<AutogradMeta>(y.grad_meta()), dy);
  }

  /// The gradient that arrives at `t` is kept instead of (only) passed on.
  void watch(const Tensor& t) {
    AutogradMeta* meta = autograd_meta(t);
    if (!meta) return;
    const void* key = meta->node ? static_cast<const void*>(meta->node.get()) : meta;
    watched_.emplace(key, Tensor());
  }

  Tensor watched(const Tensor& t) const {
    AutogradMeta* meta = autograd_meta(t);
    if (!meta) return {};
    auto it = watched_.find(meta->node ? static_cast<const void*>(meta->node.get()) : meta);
    return it == watched_.end() ? Tensor() : it->second;
  }

  void run() {
    while (!order_.empty()) {
      std::shared_ptr<Node> node = order_.top().second;
      order_.pop();
      auto it = pending_.find(node.get());
      Tensor dy = std::move(it->second);
      pending_.erase(it);
      run_node(*node, dy);
    }
    finish_leaves();
  }

 private:
  void run_node(Node& node, Tensor dy) {
    check(!node.released,
          "backward: the graph behind '{}' was already released; pass retain_graph to go through it twice", node.name);
    for (auto& hook : node.hooks)
      if (Tensor changed = hook(dy)) dy = changed;
    if (auto it = watched_.find(&node); it != watched_.end()) it->second = dy;
    Node* before = running_node();
    running_node() = &node;
    struct Restore {
      Node* node;
      ~Restore() { running_node() = node; }
    } restore{before};
    for (GradientTerm& term : node.terms) {
      run_term(node, term, dy);
      if (!options_.retain_graph) {  // free this formula's activations before the next one allocates
        term.single = nullptr;
        term.joint = nullptr;
      }
    }
    if (!options_.retain_graph) node.release();
  }

  void run_term(Node& node, GradientTerm& term, const Tensor& dy) {
    if (term.single) {
      deliver(node, term.edges[0], term.single(dy));
      return;
    }
    std::vector<bool> needs;
    for (Edge& edge : term.edges) needs.push_back(edge.wanted());
    std::vector<Tensor> all = term.joint(dy, needs);
    check(all.size() == term.edges.size(), "{}: formula returned {} gradients for {} inputs", node.name, all.size(),
          term.edges.size());
    for (size_t i = 0; i < all.size(); ++i)
      if (needs[i]) deliver(node, term.edges[i], std::move(all[i]));
  }

  void deliver(Node& node, Edge& edge, Tensor gradient) {
    if (!gradient) return;  // the formula says: no dependence
    if (gradient.shape() != edge.shape) gradient = sum_to(gradient, edge.shape);
    check(gradient.dtype() == edge.dtype, "{}: gradient is {} for an input of {}", node.name,
          dtype_name(gradient.dtype()), dtype_name(edge.dtype));
    if (anomaly_mode()) check_finite(gradient, "gradient", node.name, node.scope);
    if (edge.node)
      add(edge.node, std::move(gradient));
    else
      add_to_leaf(edge.leaf, std::move(gradient));
  }

  void add(const std::shared_ptr<Node>& node, Tensor gradient) {
    auto [it, fresh] = pending_.try_emplace(node.get());
    if (fresh) order_.emplace(node->sequence, node);
    accumulate(it->second, std::move(gradient));
  }

  void add_to_leaf(const std::shared_ptr<AutogradMeta>& leaf, Tensor gradient) {
    auto [it, fresh] = leaf_index_.try_emplace(leaf.get(), leaves_.size());
    if (fresh) leaves_.emplace_back(leaf, Tensor());
    accumulate(leaves_[it->second].second, std::move(gradient));
  }

  // Nobody else sees the bytes, and no two elements share one (a formula may return a broadcast view).
  static bool may_write(const Tensor& t) { return t.is_sole_owner() && t.is_contiguous(); }

  void accumulate(Tensor& sum, Tensor gradient) {
    if (!sum)
      sum = std::move(gradient);
    else if (!options_.create_graph && may_write(sum))
      kernels::add(sum.device(), sum, gradient, sum);
    else
      sum = strata::add(sum, gradient);
  }

  void finish_leaves() {
    for (auto& [leaf, gradient] : leaves_) {
      for (auto& hook : leaf->hooks)
        if (Tensor changed = hook(gradient)) gradient = changed;
      if (auto it = watched_.find(leaf.get()); it != watched_.end()) it->second = gradient;
      if (!into_leaves_) continue;
      if (leaf->grad) {
        accumulate(leaf->grad, std::move(gradient));
      } else {
        leaf->grad = options_.create_graph || may_write(gradient) ? gradient : clone_data(gradient);
        gradient = Tensor();
      }
      leaf->grad.storage()->set_kind(MemoryKind::gradient);
    }
  }

  using Entry = std::pair<uint64_t, std::shared_ptr<Node>>;
  struct BySequence {
    bool operator()(const Entry& a, const Entry& b) const { return a.first < b.first; }
  };

  BackwardOptions options_;
  bool into_leaves_;
  std::priority_queue<Entry, std::vector<Entry>, BySequence> order_;
  std::unordered_map<Node*, Tensor> pending_;
  std::vector<std::pair<std::shared_ptr<AutogradMeta>, Tensor>> leaves_;
  std::unordered_map<AutogradMeta*, size_t> leaf_index_;
  std::unordered_map<const void*, Tensor> watched_;
};

Tensor seed_gradient(const Tensor& y, const Tensor& dy) {
  check(requires_grad(y), "backward: the tensor wants no gradient (no parameter behind it, or computed under NoGrad)");
  if (dy) {
    check(dy.shape() == y.shape(), "backward: gradient must have the shape of the output, got {} for {}", dy.shape(),
          y.shape());
    check(dy.dtype() == y.dtype(), "backward: gradient must be {}, got {}", dtype_name(y.dtype()),
          dtype_name(dy.dtype()));
    return dy;
  }
  check(y.numel() == 1, "backward: an output of shape {} needs a gradient; reduce it to one number first", y.shape());
  return ones(y.shape(), {y.dtype(), y.device()});
}

void run_engine(Engine& engine, BackwardOptions options) {
  if (options.create_graph) {
    EnableGrad on;
    engine.run();
  } else {
    NoGrad off;
    engine.run();
  }
}

BackwardOptions normalized(BackwardOptions options) {
  options.retain_graph = options.retain_graph || options.create_graph;
  return options;
}

}  // namespace

void backward(const Tensor& y, const Tensor& dy, BackwardOptions options) {
  options = normalized(options);
  Engine engine(options, true);
  engine.seed(y, seed_gradient(y, dy));
  run_engine(engine, options);
}

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& output_gradients, BackwardOptions options) {
  check(output_gradients.empty() || output_gradients.size() == outputs.size(),
        "gradients: {} output gradients for {} outputs", output_gradients.size(), outputs.size());
  options = normalized(options);
  Engine engine(options, false);
  for (const Tensor& input : inputs) {
    check(requires_grad(input), "gradients: an input of shape {} wants no gradient", input.shape());
    engine.watch(input);
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    engine.seed(outputs[i], seed_gradient(outputs[i], output_gradients.empty() ? Tensor() : output_gradients[i]));
  run_engine(engine, options);
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) result.push_back(engine.watched(input));
  return result;
}

}  // namespace strata
