// A file's bytes as read-only memory. The pages are the system's: they cost nothing until read and may be dropped
// again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace strata {

class MappedFile {
 public:
  /// Maps a regular file (links are followed). Throws Error naming the path. The file must not shrink while mapped.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, size_t size);

  std::filesystem::path path_;
  const std::byte* data_;
  size_t size_;
};

}  // namespace strata
