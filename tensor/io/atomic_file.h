// A file that appears under its name only when it is complete: written as NAME.tmp beside it, synced to disk, renamed.
// A process killed at any moment leaves the earlier file as it was; the next write removes what was left over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace strata {

class AtomicFile {
 public:
  /// Opens NAME.tmp. `bytes_needed`: the final size if known, for the error of a full disk. Throws Error.
  explicit AtomicFile(std::filesystem::path path, uint64_t bytes_needed = 0);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Without commit: removes NAME.tmp and leaves the earlier file alone.
  ~AtomicFile();

  /// Appends. Throws Error naming the file, the bytes needed and the bytes free when the disk is full.
  void write(std::string_view bytes);
  void write(const void* data, size_t bytes) { write({static_cast<const char*>(data), bytes}); }
  /// Syncs and renames. Afterwards the file is there even if the machine loses power.
  void commit();

 private:
  [[noreturn]] void fail_with(int error, const char* action) const;

  std::filesystem::path path_, temporary_;
  uint64_t bytes_needed_ = 0, written_ = 0;
  int file_ = -1;
  bool committed_ = false;
};

/// The whole of a small file at once.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace strata
