// Writes GGUF v3 files. (ggml docs/gguf.md)
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/io/gguf_format.h"
#include "tensor/tensor.h"

namespace strata {

struct GgufTensor {
  std::string name;  // at most 63 bytes: ggml's limit
  std::variant<Tensor, QuantizedWeight> data;
  /// Of a block tensor that has more or fewer than two axes: [..., columns]. Empty: the data's own.
  Dims shape = {};
};

/// Metadata entries: gguf::value("llama.block_count", gguf::ValueType::u32, 30), gguf::array(key, element type,
/// values).
namespace gguf {
inline Entry value(std::string key, ValueType type, Json v) {
  return {std::move(key), type, std::move(v)};
}
inline Entry array(std::string key, ValueType element, Json::Array values) {
  return {std::move(key), ValueType::array, Json(std::move(values)), element};
}
}  // namespace gguf

/// Writes one file under a temporary name and renames it. Metadata keeps its order; general.alignment among it sets the
/// alignment of the data (32 otherwise). Tensors (F32, F16, BF16, F64, I8, I32, I64 or packed blocks) may be strided.
/// Throws Error naming the file and the key or tensor that cannot be written, or the bytes a full disk lacks.
void write_gguf(const std::filesystem::path& path, const std::vector<gguf::Entry>& metadata,
                const std::vector<GgufTensor>& tensors);

}  // namespace strata
