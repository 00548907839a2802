#include "tensor/kernel.h"

#include <array>

namespace strata {

namespace {
std::array<std::vector<std::string>, kDeviceTypes>& lists() {
  static std::array<std::vector<std::string>, kDeviceTypes> all;
  return all;
}
}  // namespace

const std::vector<std::string>& registered_kernels(Device::Type type) {
  return lists()[static_cast<size_t>(type)];
}
void note_registered(Device::Type type, const char* name) {
  lists()[static_cast<size_t>(type)].emplace_back(name);
}

}  // namespace strata
