// Module: named parameters, buffers and children. A member is named and registered in the line that initialises it:
//   Tensor weight = param("weight", empty({out, in}));
//   Child<Linear> q_proj = child<Linear>("q_proj", ...);
// Full names are the checkpoint's own: "model.layers.0.self_attn.q_proj.weight".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace strata::nn {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class Module;

/// What went wrong when tensors were loaded: everything, not only the first.
struct LoadReport {
  std::vector<std::string> missing;     // the module wants it, the file has it not
  std::vector<std::string> unexpected;  // the file has it, the module does not know it
  std::vector<std::string> mismatched;  // "name: expected [2, 3], got [3, 2]"
  bool ok() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  /// Up to `most` lines of each list.
  std::string text(size_t most = 10) const;
};

namespace detail {
struct ChildEntry {
  std::string name;
  std::shared_ptr<Module> module;
};
}  // namespace detail

/// A typed handle on a child; it sees a replacement (LoRA wraps a Linear in place).
template <class M>
class Child {
 public:
  explicit Child(detail::ChildEntry* entry) : entry_(entry) {}
  M* operator->() const { return static_cast<M*>(entry_->module.get()); }
  M& operator*() const { return *operator->(); }

 private:
  detail::ChildEntry* entry_;
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Depth first, in order of registration; `prefix` stands before every name.
  std::vector<NamedTensor> named_parameters(const std::string& prefix = "") const;
  std::vector<NamedTensor> named_buffers(const std::string& prefix = "") const;
  /// Parameters that want a gradient.
  std::vector<NamedTensor> trainable_parameters() const;
  /// Visits this module and all below with their full names ("" for this one).
  void for_each_module(const std::function<void(const std::string& name, Module&)>& visit,
                       const std::string& prefix = "");
  /// The module at a dotted path; nullptr if there is none.
  std::shared_ptr<Module> find(const std::string& path) const;
  /// Puts another module at a dotted path (must exist).
  void replace(const std::string& path, std::shared_ptr<Module> module);

  /// Parameters and buffers by full name.
  std::vector<NamedTensor> state_dict() const;
  /// Copies values into parameters and buffers (converting dtype). Throws an Error that lists all missing, unexpected
  /// and mismatched names unless strict is off; then the report tells.
  LoadReport load_state_dict(const std::vector<NamedTensor>& state, bool strict = true);

  /// Sets every parameter's requires_grad.
  void freeze() { set_trainable(false); }
  void set_trainable(bool trainable);
  /// Switches dropout and the like, here and below.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  /// Converts parameters and buffers in place.
  void to(DType dtype);
  void zero_grad();
  int64_t parameter_count() const;

 protected:
  /// Registers a trainable parameter (kind parameter in the ledger).
  Tensor param(std::string name, const Tensor& value);
  /// A tensor that belongs to the state but is not trained.
  Tensor buffer(std::string name, const Tensor& value);
  template <class M>
  Child<M> child(std::string name, std::shared_ptr<M> module) {
    children_.push_back(std::make_unique<detail::ChildEntry>(detail::ChildEntry{std::move(name), std::move(module)}));
    return Child<M>(children_.back().get());
  }

 private:
  detail::ChildEntry* entry(const std::string& path) const;

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<std::unique_ptr<detail::ChildEntry>> children_;
  bool training_ = true;
};

/// "a" + "b" -> "a.b"; an empty part adds no dot.
std::string join_name(const std::string& prefix, const std::string& name);

}  // namespace strata::nn
