// Storage owns (or borrows from a mapped file) the bytes behind tensors.
#pragma once

#include <atomic>
#include <memory>

#include "tensor/device.h"
#include "tensor/ledger.h"

namespace strata {

class Storage {
 public:
  /// Uninitialised bytes of the current MemoryKindScope's kind. Throws OutOfMemory.
  static std::shared_ptr<Storage> allocate(int64_t bytes, Device device);
  /// Read-only bytes kept alive by `owner` (a mapped file).
  static std::shared_ptr<Storage> borrow(const void* data, int64_t bytes, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const std::byte* data() const { return data_; }
  /// For writing: throws if the bytes are read-only; counts a new version (stale-write check of autograd).
  std::byte* mutable_data();
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool writable() const { return !owner_; }
  MemoryKind kind() const { return kind_; }
  void set_kind(MemoryKind kind);
  /// While a graph node holds the bytes, workspace counts as activation.
  void retain_for_backward();
  void release_from_backward();
  bool retained_for_backward() const { return saves_.load() > 0; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }

 private:
  Storage(std::byte* data, int64_t bytes, Device device, MemoryKind kind, std::shared_ptr<const void> owner);

  std::byte* data_;
  int64_t bytes_;
  Device device_;
  MemoryKind kind_;
  std::atomic<uint32_t> version_{0};
  std::atomic<int32_t> saves_{0};
  std::shared_ptr<const void> owner_;
};

}  // namespace strata
