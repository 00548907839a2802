#include "nn/module.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/autograd.h"
#include "tensor/create.h"

namespace strata::nn {

std::string join_name(const std::string& prefix, const std::string& name) {
  if (prefix.empty() || name.empty()) return prefix + name;
  return prefix + "." + name;
}

std::string LoadReport::text(size_t most) const {
  std::string out;
  auto list = [&](const char* title, const std::vector<std::string>& names) {
    if (names.empty()) return;
    out += fmt::format("{}{} ({}):", out.empty() ? "" : "; ", title, names.size());
    for (size_t i = 0; i < names.size() && i < most; ++i) out += (i ? ", " : " ") + names[i];
    if (names.size() > most) out += ", ...";
  };
  list("missing", missing);
  list("unexpected", unexpected);
  list("shapes that differ", mismatched);
  return out;
}

namespace {

template <class Visit>
void walk(const std::vector<std::unique_ptr<detail::ChildEntry>>& children, const std::string& prefix, Visit&& visit) {
  for (const auto& c : children) visit(join_name(prefix, c->name), *c->module);
}

}  // namespace

std::vector<NamedTensor> Module::named_parameters(const std::string& prefix) const {
  std::vector<NamedTensor> all;
  for (const NamedTensor& p : parameters_) all.push_back({join_name(prefix, p.name), p.tensor});
  walk(children_, prefix, [&](const std::string& name, const Module& m) {
    for (NamedTensor& p : m.named_parameters(name)) all.push_back(std::move(p));
  });
  return all;
}

std::vector<NamedTensor> Module::named_buffers(const std::string& prefix) const {
  std::vector<NamedTensor> all;
  for (const NamedTensor& b : buffers_) all.push_back({join_name(prefix, b.name), b.tensor});
  walk(children_, prefix, [&](const std::string& name, const Module& m) {
    for (NamedTensor& b : m.named_buffers(name)) all.push_back(std::move(b));
  });
  return all;
}

std::vector<NamedTensor> Module::trainable_parameters() const {
  std::vector<NamedTensor> all = named_parameters();
  std::erase_if(all, [](const NamedTensor& p) { return !requires_grad(p.tensor); });
  return all;
}

void Module::for_each_module(const std::function<void(const std::string&, Module&)>& visit, const std::string& prefix) {
  visit(prefix, *this);
  walk(children_, prefix, [&](const std::string& name, Module& m) { m.for_each_module(visit, name); });
}

detail::ChildEntry* Module::entry(const std::string& path) const {
  for (const auto& c : children_) {
    if (c->name == path) return c.get();
    bool below =
        !c->name.empty() && path.size() > c->name.size() && path.starts_with(c->name) && path[c->name.size()] == '.';
    if (below) {
      if (detail::ChildEntry* found = c->module->entry(path.substr(c->name.size() + 1))) return found;
    } else if (c->name.empty()) {
      if (detail::ChildEntry* found = c->module->entry(path)) return found;
    }
  }
  return nullptr;
}

std::shared_ptr<Module> Module::find(const std::string& path) const {
  detail::ChildEntry* found = entry(path);
  return found ? found->module : nullptr;
}

void Module::replace(const std::string& path, std::shared_ptr<Module> module) {
  detail::ChildEntry* found = entry(path);
  check(found != nullptr, "replace: no module '{}'", path);
  found->module = std::move(module);
}

std::vector<NamedTensor> Module::state_dict() const {
  std::vector<NamedTensor> all = named_parameters();
  for (NamedTensor& b : named_buffers()) all.push_back(std::move(b));
  return all;
}

LoadReport Module::load_state_dict(const std::vector<NamedTensor>& state, bool strict) {
  std::unordered_map<std::string, Tensor> given;
  for (const NamedTensor& s : state) given.emplace(s.name, s.tensor);
  LoadReport report;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const NamedTensor& own : state_dict()) {
    auto it = given.find(own.name);
    if (it == given.end()) {
      report.missing.push_back(own.name);
      continue;
    }
    if (it->second.shape() != own.tensor.shape())
      report.mismatched.push_back(
          fmt::format("{}: expected {}, got {}", own.name, own.tensor.shape(), it->second.shape()));
    else
      copies.emplace_back(own.tensor, it->second);
    given.erase(it);
  }
  for (const NamedTensor& s : state)
    if (given.contains(s.name)) report.unexpected.push_back(s.name);
  check(!strict || report.ok(), "load_state_dict: {}", report.text());
  for (auto& [to, from] : copies) copy_(to, from);
  return report;
}

void Module::set_trainable(bool trainable) {
  for (const NamedTensor& p : named_parameters()) set_requires_grad(p.tensor, trainable);
}

void Module::train(bool on) {
  for_each_module([on](const std::string&, Module& m) { m.training_ = on; });
}

void Module::to(DType dtype) {
  MemoryKindScope kind(MemoryKind::parameter);
  for (const NamedTensor& t : state_dict())
    if (is_floating(t.tensor.dtype()) && t.tensor.dtype() != dtype) t.tensor.rebind(clone_data(t.tensor, dtype));
}

void Module::zero_grad() {
  for (const NamedTensor& p : named_parameters())
    if (grad(p.tensor)) set_grad(p.tensor, {});
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedTensor& p : named_parameters()) count += p.tensor.numel();
  return count;
}

Tensor Module::param(std::string name, const Tensor& value) {
  value.storage()->set_kind(MemoryKind::parameter);
  set_requires_grad(value);
  parameters_.push_back({std::move(name), value});
  return value;
}

Tensor Module::buffer(std::string name, const Tensor& value) {
  value.storage()->set_kind(MemoryKind::parameter);
  buffers_.push_back({std::move(name), value});
  return value;
}

}  // namespace strata::nn
