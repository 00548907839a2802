// Host memory for Storage: 64-byte aligned blocks, large ones kept for reuse so that a training step does not
// pay page faults for every activation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strata::allocator {

/// Uninitialised bytes (0xFF, a NaN in every float format, when poison is on). Throws OutOfMemory.
void* allocate(size_t bytes);
void release(void* pointer, size_t bytes) noexcept;
int64_t cached_bytes();
/// Gives cached blocks back to the system.
void trim();
/// Fills new blocks with 0xFF: tests use it to find reads of uninitialised memory.
void set_poison(bool on);
/// Refuses to own more than this many bytes at once (0: no limit): OutOfMemory beyond it.
void set_limit(int64_t bytes);

}  // namespace strata::allocator
