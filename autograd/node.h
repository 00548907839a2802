// The graph's pieces; for autograd's own files.
#pragma once

#include <atomic>

#include "autograd/autograd.h"
#include "autograd/record.h"

namespace strata {

using GradientHook = std::function<Tensor(const Tensor&)>;

/// What autograd keeps on a tensor: a leaf has requires_grad and collects grad; a result has the node that made it.
struct AutogradMeta : GradMeta {
  bool requires_grad = false;
  Tensor grad;
  std::shared_ptr<Node> node;
  std::vector<GradientHook> hooks;  // of a leaf
  ~AutogradMeta() override;
};

/// Where one gradient goes: to the node of an intermediate result, or to a leaf. Neither: dropped.
struct Edge {
  std::shared_ptr<Node> node;
  std::shared_ptr<AutogradMeta> leaf;
  Dims shape;
  DType dtype = DType::f32;
  bool wanted() const { return node != nullptr || leaf != nullptr; }
};

/// One formula (one edge) or a joint one (several).
struct GradientTerm {
  std::vector<Edge> edges;
  Formula single;
  JointFormula joint;
};

class Node : public std::enable_shared_from_this<Node> {
 public:
  Node(const char* name, const Tensor& y);
  ~Node();

  const char* name;
  std::string scope;  // module names, for anomaly texts
  uint64_t sequence;  // grows with creation: a consumer's is always higher than its producers'
  Dims shape;         // of the output
  DType dtype;
  Device device;
  std::vector<GradientTerm> terms;
  std::vector<GradientHook> hooks;
  bool released = false;

  /// Drops formulas, captured activations and edges, iteratively.
  void release();
};

AutogradMeta* autograd_meta(const Tensor& t);
/// The meta of t, made if missing.
AutogradMeta& ensure_meta(const Tensor& t);
/// Frees a chain of nodes without recursion, however long.
void retire(std::shared_ptr<Node> node);

/// The node whose formulas run now on this thread (for saved outputs and error texts); null outside backward.
Node*& running_node();
bool anomaly_mode();
/// Throws if t holds NaN or infinity: "anomaly: <what> of '<op>' ...".
void check_finite(const Tensor& t, const char* what, const char* op, const std::string& scope);
/// Set by record() while a checkpointed function runs without gradients: something inside would have needed one.
bool*& checkpoint_probe();

}  // namespace strata
