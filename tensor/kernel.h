// A kernel slot: a name and one function pointer per device. Families declare slots in tensor/kernels/F.h; each
// device fills them with Register lines. Kernels get checked, allocated arguments.
#pragma once

#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/error.h"

namespace strata {

template <class Signature>
class Kernel;

template <class... Args>
class Kernel<void(Args...)> {
 public:
  using Function = void (*)(Args...);
  constexpr explicit Kernel(const char* name) : name_(name) {}

  const char* name() const { return name_; }
  bool has(Device device) const { return functions_[static_cast<size_t>(device.type)] != nullptr; }

  /// Runs the device's kernel; an empty slot throws "softmax: no kernel for cuda:0".
  template <class... Given>
  void operator()(Device device, Given&&... args) const {
    Function function = functions_[static_cast<size_t>(device.type)];
    check(function != nullptr, "{}: no kernel for {}", name_, device.name());
    function(std::forward<Given>(args)...);
  }
  void set(Device::Type type, Function function) { functions_[static_cast<size_t>(type)] = function; }

 private:
  const char* name_;
  Function functions_[kDeviceTypes] = {};
};

/// Names of all filled slots of a device, in order of registration (a test holds the list).
const std::vector<std::string>& registered_kernels(Device::Type type);
void note_registered(Device::Type type, const char* name);

/// `static Register r{kernels::softmax, Device::Type::cpu, softmax_cpu};`
struct Register {
  template <class Signature>
  Register(Kernel<Signature>& slot, Device::Type type, typename Kernel<Signature>::Function function) {
    slot.set(type, function);
    note_registered(type, slot.name());
  }
};

}  // namespace strata
