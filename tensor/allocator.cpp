#include "tensor/allocator.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "tensor/error.h"
#include "tensor/ledger.h"

namespace strata::allocator {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 64 << 10;  // smaller blocks: the C library's own lists are good
constexpr size_t kSteps = 8;            // size classes between two powers of two
constexpr int64_t kMaxCached = 256ll << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCaching = false;  // so that the sanitizers see every use after free
#else
constexpr bool kCaching = true;
#endif

// Size classes: 2^e * (1 + s / 8). At most 12.5 % of a block is slack.
size_t round_up(size_t bytes) {
  if (bytes < kSmallest) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  size_t step = std::bit_floor(bytes) / kSteps;
  return (bytes + step - 1) / step * step;
}

size_t class_of(size_t rounded) {
  size_t power = static_cast<size_t>(std::bit_width(rounded)) - 1;
  return power * kSteps + (rounded - (size_t{1} << power)) / ((size_t{1} << power) / kSteps);
}

struct Cache {
  std::mutex mutex;
  std::array<std::vector<void*>, 64 * kSteps> free;
  int64_t bytes = 0;
};

Cache& cache() {
  static Cache* c = new Cache;  // lives as long as the last tensor, which may be a static of the user's
  return *c;
}

std::atomic<bool> poison{false};
std::atomic<int64_t> limit{0};
std::atomic<int64_t> owned{0};

void* from_cache(size_t rounded) {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  auto& list = c.free[class_of(rounded)];
  if (list.empty()) return nullptr;
  void* pointer = list.back();
  list.pop_back();
  c.bytes -= static_cast<int64_t>(rounded);
  return pointer;
}

bool to_cache(void* pointer, size_t rounded) {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  if (c.bytes + static_cast<int64_t>(rounded) > kMaxCached) return false;
  c.free[class_of(rounded)].push_back(pointer);
  c.bytes += static_cast<int64_t>(rounded);
  return true;
}

[[noreturn]] void out_of_memory(size_t bytes) {
  fail<OutOfMemory>(
      "out of memory: cannot allocate {:.1f} MiB\n{}ways out, in order: smaller micro-batch, shorter sequences, 16-bit "
      "or "
      "quantised weights, gradient accumulation, activation checkpointing",
      static_cast<double>(bytes) / (1 << 20), ledger::table());
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes > (size_t{1} << 47)) out_of_memory(bytes);
  size_t rounded = round_up(std::max<size_t>(bytes, 1));
  int64_t allowed = limit.load(std::memory_order_relaxed);
  if (allowed > 0 && owned.load() + static_cast<int64_t>(rounded) > allowed) out_of_memory(bytes);
  void* pointer = kCaching && rounded >= kSmallest ? from_cache(rounded) : nullptr;
  if (!pointer) pointer = std::aligned_alloc(kAlignment, rounded);
  if (!pointer) {
    trim();
    pointer = std::aligned_alloc(kAlignment, rounded);
  }
  if (!pointer) out_of_memory(bytes);
  owned += static_cast<int64_t>(rounded);
  if (poison.load(std::memory_order_relaxed)) std::memset(pointer, 0xFF, rounded);
  return pointer;
}

void release(void* pointer, size_t bytes) noexcept {
  if (!pointer) return;
  size_t rounded = round_up(std::max<size_t>(bytes, 1));
  owned -= static_cast<int64_t>(rounded);
  if (kCaching && rounded >= kSmallest && to_cache(pointer, rounded)) return;
  std::free(pointer);
}

int64_t cached_bytes() {
  std::lock_guard lock(cache().mutex);
  return cache().bytes;
}

void trim() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  for (auto& list : c.free) {
    for (void* pointer : list) std::free(pointer);
    list.clear();
  }
  c.bytes = 0;
}

void set_poison(bool on) {
  poison = on;
}
void set_limit(int64_t bytes) {
  limit = bytes;
}

}  // namespace strata::allocator
