// The memory ledger: every allocation has a kind; current and peak bytes are kept by kind and device.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tensor/device.h"

namespace strata {

enum class MemoryKind : uint8_t { workspace, parameter, gradient, optimizer, activation, kv_cache, quantized, mapped };
inline constexpr int kMemoryKinds = 8;
const char* memory_kind_name(MemoryKind kind);

/// Bytes at one moment. `mapped` counts file pages that the system may drop; total() leaves them out.
struct MemoryUse {
  std::array<int64_t, kMemoryKinds> bytes{};
  int64_t operator[](MemoryKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  int64_t total() const;
};

namespace ledger {

/// What is allocated now; the moment of the highest total since reset_peak; each kind's own highest figure.
MemoryUse current(Device device = Device::cpu());
MemoryUse at_peak(Device device = Device::cpu());
MemoryUse peak_by_kind(Device device = Device::cpu());
void reset_peak(Device device = Device::cpu());
/// Bytes the allocator keeps for reuse but nobody owns.
int64_t cached(Device device = Device::cpu());
/// A table of the above, for error texts and logs.
std::string table(Device device = Device::cpu());

// Called by Storage alone.
void add(Device device, MemoryKind kind, int64_t bytes);
void move(Device device, MemoryKind from, MemoryKind to, int64_t bytes);

}  // namespace ledger

/// While alive, new allocations of this thread get `kind` (workspace otherwise).
class MemoryKindScope {
 public:
  explicit MemoryKindScope(MemoryKind kind);
  ~MemoryKindScope();
  MemoryKindScope(const MemoryKindScope&) = delete;
  MemoryKindScope& operator=(const MemoryKindScope&) = delete;
  static MemoryKind current();

 private:
  MemoryKind before_;
};

}  // namespace strata
