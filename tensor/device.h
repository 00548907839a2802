// Where bytes live. Device::cuda exists in every build; in one without CUDA nothing can be allocated there.
#pragma once

#include <cstdint>
#include <string>

namespace strata {

struct Device {
  enum class Type : uint8_t { cpu, cuda };
  Type type = Type::cpu;
  int8_t index = 0;

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index = 0) { return {Type::cuda, static_cast<int8_t>(index)}; }
  bool is_cpu() const { return type == Type::cpu; }
  std::string name() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(index); }
  friend bool operator==(Device, Device) = default;
};

inline constexpr int kDeviceTypes = 2;

}  // namespace strata
