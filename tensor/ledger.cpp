#include "tensor/ledger.h"

#include <fmt/format.h>

#include <mutex>

#include "tensor/allocator.h"

namespace strata {

namespace {

struct Account {
  MemoryUse now, at_peak, peak_by_kind;
};

std::mutex mutex;
std::array<Account, kDeviceTypes> accounts;

Account& account(Device device) {
  return accounts[static_cast<size_t>(device.type)];
}

void note_peak(Account& a) {
  for (size_t k = 0; k < kMemoryKinds; ++k) a.peak_by_kind.bytes[k] = std::max(a.peak_by_kind.bytes[k], a.now.bytes[k]);
  if (a.now.total() > a.at_peak.total()) a.at_peak = a.now;
}

thread_local MemoryKind current_kind = MemoryKind::workspace;

}  // namespace

const char* memory_kind_name(MemoryKind kind) {
  static constexpr const char* kNames[] = {"workspace",  "parameter", "gradient",         "optimizer state",
                                           "activation", "kv cache",  "quantised weight", "mapped file"};
  return kNames[static_cast<int>(kind)];
}

int64_t MemoryUse::total() const {
  int64_t sum = 0;
  for (int64_t b : bytes) sum += b;
  return sum - (*this)[MemoryKind::mapped];
}

namespace ledger {

MemoryUse current(Device device) {
  std::lock_guard lock(mutex);
  return account(device).now;
}

MemoryUse at_peak(Device device) {
  std::lock_guard lock(mutex);
  return account(device).at_peak;
}

MemoryUse peak_by_kind(Device device) {
  std::lock_guard lock(mutex);
  return account(device).peak_by_kind;
}

void reset_peak(Device device) {
  std::lock_guard lock(mutex);
  Account& a = account(device);
  a.at_peak = a.peak_by_kind = a.now;
}

int64_t cached(Device device) {
  return device.is_cpu() ? allocator::cached_bytes() : 0;
}

std::string table(Device device) {
  MemoryUse now = current(device), peak = at_peak(device);
  std::string text = fmt::format("memory on {} (MiB)      now    at peak\n", device.name());
  auto line = [&](const char* name, int64_t a, int64_t b) {
    text += fmt::format("  {:<18} {:>9.1f}  {:>9.1f}\n", name, static_cast<double>(a) / (1 << 20),
                        static_cast<double>(b) / (1 << 20));
  };
  for (int k = 0; k < kMemoryKinds; ++k) {
    auto kind = static_cast<MemoryKind>(k);
    if (now[kind] || peak[kind]) line(memory_kind_name(kind), now[kind], peak[kind]);
  }
  line("total", now.total(), peak.total());
  line("cached for reuse", cached(device), cached(device));
  return text;
}

void add(Device device, MemoryKind kind, int64_t bytes) {
  std::lock_guard lock(mutex);
  Account& a = account(device);
  a.now.bytes[static_cast<size_t>(kind)] += bytes;
  if (bytes > 0) note_peak(a);
}

void move(Device device, MemoryKind from, MemoryKind to, int64_t bytes) {
  std::lock_guard lock(mutex);
  Account& a = account(device);
  a.now.bytes[static_cast<size_t>(from)] -= bytes;
  a.now.bytes[static_cast<size_t>(to)] += bytes;
  note_peak(a);
}

}  // namespace ledger

MemoryKindScope::MemoryKindScope(MemoryKind kind) : before_(current_kind) {
  current_kind = kind;
}
MemoryKindScope::~MemoryKindScope() {
  current_kind = before_;
}
MemoryKind MemoryKindScope::current() {
  return current_kind;
}

}  // namespace strata
