// How an operation records its derivative:
//   return record("mul", y, wrt(a, [b = saved(b)](const Tensor& dy) { return dy * b(); }),
//                           wrt(b, [a = saved(a)](const Tensor& dy) { return dy * a(); }));
// A formula gets the gradient of y and returns that of its input, in y's or the input's shape: the engine sums over
// broadcast axes. A formula whose input needs no gradient is dropped here, with everything it captured.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace strata {

class Node;

/// A tensor kept by a formula. Calling it gives the tensor back, or throws if it was written to since.
class Saved {
 public:
  Tensor operator()() const;

 private:
  friend Saved saved(const Tensor&);
  friend Saved saved_output(const Tensor&);
  struct State {
    Tensor tensor;
    uint32_t version;
    bool is_output;
    State(Tensor t, bool output);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;
  };
  explicit Saved(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};
/// An input (or any other tensor with its own history); undefined tensors are fine.
Saved saved(const Tensor& t);
/// The op's own output: kept without its graph, so that the node does not own itself.
Saved saved_output(const Tensor& y);

using Formula = std::function<Tensor(const Tensor& dy)>;
/// needs[i] says whether the i-th listed input wants its gradient; the result has one tensor per input.
using JointFormula = std::function<std::vector<Tensor>(const Tensor& dy, const std::vector<bool>& needs)>;

namespace detail {

struct Term {
  std::vector<Tensor> inputs;
  Formula single;
  JointFormula joint;
};

/// Gradients are enabled and the input (undefined is fine) wants one.
bool wants_gradient(const Tensor& input);
Tensor record_terms(const char* name, const Tensor& y, std::vector<Term> terms);

}  // namespace detail

template <class F>
detail::Term wrt(const Tensor& input, F&& formula) {
  if (!detail::wants_gradient(input)) return {};
  return {{input}, std::forward<F>(formula), nullptr};
}

template <class F>
detail::Term joint(std::vector<Tensor> inputs, F&& formula) {
  bool any = false;
  for (const Tensor& input : inputs) any = any || detail::wants_gradient(input);
  if (!any) return {};
  return {std::move(inputs), nullptr, std::forward<F>(formula)};
}

/// Attaches the formulas to y (a fresh result) and returns it.
template <class... Terms>
Tensor record(const char* name, const Tensor& y, Terms&&... terms) {
  std::vector<detail::Term> list;
  (list.push_back(std::forward<Terms>(terms)), ...);
  return detail::record_terms(name, y, std::move(list));
}

}  // namespace strata
