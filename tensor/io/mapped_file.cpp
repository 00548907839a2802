#include "tensor/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tensor/error.h"

namespace strata {

namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
};

[[noreturn]] void fail_to(const char* action, const std::filesystem::path& path, int error) {
  fail("{}: cannot {}: {}", path.string(), action, std::generic_category().message(error));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe must not hang the reader
  if (file.value < 0) fail_to("open file", path, errno);
  struct stat status;
  if (fstat(file.value, &status) != 0) fail_to("read file status", path, errno);
  check(S_ISREG(status.st_mode), "{}: expected a regular file, got {}", path.string(),
        S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  auto size = static_cast<size_t>(status.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (mapped == MAP_FAILED) fail_to("map file", path, errno);
    data = static_cast<const std::byte*>(mapped);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

MappedFile::MappedFile(std::filesystem::path path, const std::byte* data, size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace strata
