// GGUF v2/v3 files, mapped. (ggml docs/gguf.md)
#pragma once

#include <filesystem>
#include <memory>
#include <variant>
#include <vector>

#include "tensor/io/gguf_format.h"
#include "tensor/io/json.h"
#include "tensor/kernels/quant.h"

namespace strata {

struct GgufTensorInfo {
  std::string name;
  std::string type;  // "F32", "Q4_1", ... as ggml spells it
  Dims shape;        // row-major: [rows, columns] (GGUF lists the fastest axis first; this does not)
  int64_t bytes;
};

class GgufFile {
 public:
  /// The first file of a split model (NAME-00001-of-0000N.gguf) opens all of them.
  /// Throws FormatError naming file, offset and field.
  static GgufFile open(const std::filesystem::path& path);
  /// All key/value pairs, as an object in file order (of a split model: the first file's). f32 values are widened to
  /// double. Strings are taken as they are: GGUF does not promise valid UTF-8 for token texts.
  const Json& metadata() const;
  /// The same with the types they have in the file, as write_gguf takes them.
  const std::vector<gguf::Entry>& entries() const;
  const std::vector<GgufTensorInfo>& tensors() const;  // in file order
  const GgufTensorInfo* find(const std::string& name) const;
  /// F32/F16/BF16/F64/I8/I32/I64: a read-only tensor on the mapped bytes. Block types: packed bytes with their type
  /// (a 1-D or N-D tensor counts as rows of its last axis). Error naming the file if absent, FormatError for types
  /// this build cannot read.
  std::variant<Tensor, QuantizedWeight> tensor(const std::string& name) const;
  /// The tensor as f32, dequantised if need be.
  Tensor tensor_f32(const std::string& name) const;

 private:
  struct State;
  explicit GgufFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace strata
