#include "data/text/gunzip.h"

#include <zlib.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "tensor/error.h"

namespace strata::text {

namespace {
std::string unpack(std::string_view packed, const std::string& name, size_t limit) {
  z_stream stream{};
  check(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK, "{}: zlib does not start", name);
  std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  std::string out;
  char block[1 << 16];
  size_t given = 0;
  int rc = Z_OK;
  while (rc != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      size_t n = std::min<size_t>(packed.size() - given, 1 << 20);
      check<FormatError>(n > 0, "{}: gzip data ends early, at byte {}", name, given);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
      stream.avail_in = static_cast<uInt>(n);
      given += n;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block);
    stream.avail_out = sizeof block;
    rc = inflate(&stream, Z_NO_FLUSH);
    check<FormatError>(rc == Z_OK || rc == Z_STREAM_END, "{}: gzip data is damaged near byte {}: {}", name,
                       given - stream.avail_in, stream.msg ? stream.msg : "zlib gives no reason");
    out.append(block, sizeof block - stream.avail_out);
    check<FormatError>(out.size() <= limit, "{}: unpacks to more than {} bytes", name, limit);
  }
  return out;
}
}  // namespace

std::string read_maybe_gzip(const std::filesystem::path& path, size_t limit) {
  std::ifstream in(path, std::ios::binary);
  check(in.good() && !std::filesystem::is_directory(path), "{}: cannot open file", path.string());
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return bytes.starts_with("\x1f\x8b") ? unpack(bytes, path.string(), limit) : bytes;
}

}  // namespace strata::text
