// What a model, adapter or tensor file holds, whatever its format: the part of `strata inspect` that does not print.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tensor/io/json.h"
#include "tensor/tensor.h"

namespace strata::apps {

struct StoredTensor {
  std::string name;
  std::string type;  // "f32", "Q4_1", ...
  Dims shape;
  int64_t bytes = 0;
  bool readable = true;  // false: a type of the format that cannot be read here (F8_E4M3, ...)
};

struct FileContents {
  std::string format;                      // "safetensors", "GGUF", "PEFT adapter (safetensors)"
  std::filesystem::path path;              // as given
  uint64_t file_bytes = 0;                 // of all shards
  Json metadata = Json::object();          // GGUF keys, __metadata__, config.json or adapter_config.json
  std::vector<std::string> notes = {};     // what an adapter's configuration means, and what of it is not understood
  std::vector<StoredTensor> tensors = {};  // layers in their order, not 0, 1, 10, 11
  std::function<Tensor(const std::string& name)> load = {};  // a readable tensor; quantised ones as f32
};

/// A .safetensors or .gguf file, a safetensors index, or a folder with a model or an adapter. Throws UsageError if
/// there is nothing of that kind, FormatError if it is damaged.
FileContents read_contents(const std::filesystem::path& path);

/// Tensors of one type and shape whose names differ only in numbers: "model.layers.{0..29}.mlp.up_proj.weight".
struct TensorGroup {
  std::string name;
  const StoredTensor* first;
  int64_t count;
};
std::vector<TensorGroup> group_layers(const std::vector<StoredTensor>& tensors);

/// Range and shape of the values of one tensor. Mean and deviation are over the finite ones; NaN if there are none.
struct ValueSummary {
  double low, high, mean, deviation;
  int64_t not_finite;
};
ValueSummary summarize(const Tensor& t);

}  // namespace strata::apps
