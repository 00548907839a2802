#include "tensor/storage.h"

#include "tensor/allocator.h"
#include "tensor/error.h"

namespace strata {

Storage::Storage(std::byte* data, int64_t bytes, Device device, MemoryKind kind, std::shared_ptr<const void> owner)
    : data_(data), bytes_(bytes), device_(device), kind_(kind), owner_(std::move(owner)) {
  ledger::add(device_, kind_, bytes_);
}

std::shared_ptr<Storage> Storage::allocate(int64_t bytes, Device device) {
  check(device.is_cpu(), "allocate: this build has no device {}; configure with -DSTRATA_CUDA=ON", device.name());
  auto* data = static_cast<std::byte*>(allocator::allocate(static_cast<size_t>(bytes)));
  return std::shared_ptr<Storage>(new Storage(data, bytes, device, MemoryKindScope::current(), nullptr));
}

std::shared_ptr<Storage> Storage::borrow(const void* data, int64_t bytes, std::shared_ptr<const void> owner) {
  auto* bytes_of_file = static_cast<std::byte*>(const_cast<void*>(data));  // mutable_data refuses to hand it out
  return std::shared_ptr<Storage>(
      new Storage(bytes_of_file, bytes, Device::cpu(), MemoryKind::mapped, std::move(owner)));
}

Storage::~Storage() {
  ledger::add(device_, kind_, -bytes_);
  if (!owner_) allocator::release(data_, static_cast<size_t>(bytes_));
}

std::byte* Storage::mutable_data() {
  check(writable(), "write: the tensor's bytes are a mapped file and read-only; clone() it first");
  version_.fetch_add(1, std::memory_order_relaxed);
  return data_;
}

void Storage::set_kind(MemoryKind kind) {
  if (kind == kind_ || kind_ == MemoryKind::mapped) return;
  ledger::move(device_, kind_, kind, bytes_);
  kind_ = kind;
}

void Storage::retain_for_backward() {
  if (saves_.fetch_add(1) == 0 && kind_ == MemoryKind::workspace) set_kind(MemoryKind::activation);
}

void Storage::release_from_backward() {
  if (saves_.fetch_sub(1) == 1 && kind_ == MemoryKind::activation) set_kind(MemoryKind::workspace);
}

}  // namespace strata
