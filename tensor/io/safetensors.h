// safetensors files, single or sharded with model.safetensors.index.json: mapped on reading, atomic on writing.
// Format: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, data. (huggingface/safetensors README)
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace strata {

struct TensorInfo {
  std::string name;
  DType dtype;
  Dims shape;
  int64_t bytes;
  std::filesystem::path file;  // the shard that holds it
};

/// A tensor whose element type exists in the format but not here (F8_E4M3, I16, U32, ...), as the file spells it.
struct UnsupportedTensor {
  std::string name;
  std::string dtype;
  std::filesystem::path file;
};

class SafetensorsFile {
 public:
  /// A .safetensors file, an index .json, or a folder holding model.safetensors / model.safetensors.index.json.
  /// Throws FormatError naming file, tensor and field for anything the format does not allow.
  static SafetensorsFile open(const std::filesystem::path& path);
  const std::vector<TensorInfo>& tensors() const;  // sorted by name
  /// Left out of tensors(); contains() knows them and tensor() throws FormatError with name and dtype.
  const std::vector<UnsupportedTensor>& unsupported() const;
  bool contains(const std::string& name) const;
  /// A read-only tensor on the mapped bytes (kind mapped); Error naming the file if absent. A file whose header
  /// leaves the data misaligned for its type gives a copy.
  Tensor tensor(const std::string& name) const;
  /// __metadata__; of shards, their union (the first shard's value where they differ).
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct State;
  explicit SafetensorsFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Writes one file: to a temporary name in the same folder, flushed to disk, renamed. Tensors may be strided; order
/// of names is kept. Throws Error naming file and bytes needed if the disk is full; the old file stays.
void save_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata = {});
/// Shards of at most max_shard_bytes (a larger tensor gets a shard of its own) plus model.safetensors.index.json in
/// `folder`. The index is written last, so a reader never sees it without its shards.
void save_safetensors_sharded(const std::filesystem::path& folder,
                              const std::vector<std::pair<std::string, Tensor>>& tensors, int64_t max_shard_bytes,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace strata
