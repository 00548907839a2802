#include "tensor/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "tensor/error.h"

namespace strata {

namespace fs = std::filesystem;

namespace {
fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Makes the rename itself durable. Some file systems cannot sync a folder; the file is in place all the same.
void sync_folder(const fs::path& folder) {
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}
}  // namespace

AtomicFile::AtomicFile(fs::path path, uint64_t bytes_needed)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp"), bytes_needed_(bytes_needed) {
  std::error_code ignored;
  fs::remove(temporary_, ignored);  // left by a process that was killed; O_EXCL below never follows a link
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail_with(errno, "open");
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) close(file_);
  std::error_code ignored;
  if (!committed_) fs::remove(temporary_, ignored);
}

void AtomicFile::write(std::string_view bytes) {
  bytes_needed_ = std::max<uint64_t>(bytes_needed_, written_ + bytes.size());
  while (!bytes.empty()) {
    ssize_t n = ::write(file_, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_with(n < 0 ? errno : ENOSPC, "write");
    written_ += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  if (fsync(file_) != 0 && errno != EINVAL && errno != EROFS) fail_with(errno, "sync");
  int closed = close(file_);
  file_ = -1;
  if (closed != 0) fail_with(errno, "close");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_with(errno, "rename");
  committed_ = true;
  sync_folder(folder_of(path_));
}

void AtomicFile::fail_with(int error, const char* action) const {
  std::string reason = std::generic_category().message(error);
  if (error != ENOSPC && error != EDQUOT && error != EFBIG)
    fail("write_file: {}: cannot {}: {}", path_.string(), action, reason);
  std::error_code unknown;
  fs::space_info space = fs::space(folder_of(path_), unknown);
  std::string free = unknown ? "" : fmt::format(", {} bytes are free there", space.available);
  fail("write_file: {}: needs {} bytes, wrote {}: {}{}", path_.string(), bytes_needed_, written_, reason, free);
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path, bytes.size());
  file.write(bytes);
  file.commit();
}

}  // namespace strata
