// Files that may be gzip-compressed, read whole.
#pragma once

#include <filesystem>
#include <string>

namespace strata::text {

/// The file's bytes, unpacked if it begins with gzip's magic bytes. Error if it cannot be opened, FormatError if the
/// compressed data is damaged or unpacks to more than `limit` bytes.
std::string read_maybe_gzip(const std::filesystem::path& path, size_t limit = size_t{1} << 30);

}  // namespace strata::text
