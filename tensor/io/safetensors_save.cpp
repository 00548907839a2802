#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "tensor/create.h"
#include "tensor/io/atomic_file.h"
#include "tensor/io/json.h"
#include "tensor/io/safetensors.h"

namespace strata {

namespace fs = std::filesystem;

namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

const char* file_dtype(DType dtype) {
  switch (dtype) {
    case DType::f64: return "F64";
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::i64: return "I64";
    case DType::i32: return "I32";
    case DType::i8: return "I8";
    case DType::u8: return "U8";
    case DType::boolean: return "BOOL";
  }
  return "?";
}

void check_names(const fs::path& path, const NamedTensors& tensors) {
  std::set<std::string_view> seen;
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "save_safetensors: {}: tensor '{}' is undefined", path.string(), name);
    check(name != "__metadata__", "save_safetensors: {}: a tensor cannot be called __metadata__", path.string());
    check(seen.insert(name).second, "save_safetensors: {}: two tensors are called '{}'", path.string(), name);
  }
}

// Wide elements first: the format allows no padding, so this keeps every tensor aligned for its type.
std::vector<size_t> data_order(const NamedTensors& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return dtype_size(tensors[a].second.dtype()) > dtype_size(tensors[b].second.dtype());
  });
  return order;
}

// The JSON text, filled with spaces so that the data begins at a multiple of 8.
std::string header_text(const fs::path& path, const NamedTensors& tensors, const std::vector<size_t>& order,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<int64_t> begin(tensors.size());
  int64_t at = 0;
  for (size_t i : order) {
    begin[i] = at;
    at += tensors[i].second.bytes();
  }
  Json header = Json::object();
  if (!metadata.empty()) {
    Json strings = Json::object();
    for (const auto& [key, value] : metadata) strings.set(key, value);
    header.set("__metadata__", strings);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    Json shape = Json::array();
    for (int64_t size : tensor.shape()) shape.push(size);
    Json entry = Json::object();
    entry.set("dtype", file_dtype(tensor.dtype())).set("shape", shape);
    entry.set("data_offsets", Json::array().push(begin[i]).push(begin[i] + tensor.bytes()));
    header.set(name, entry);
  }
  std::string text = header.dump();
  Json::parse(text, path.string());  // refuses names and values that are not UTF-8, before the file exists
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

void write_elements(AtomicFile& file, const Tensor& tensor) {
  if (tensor.numel() == 0) return;
  bool direct = tensor.device().is_cpu() && tensor.is_contiguous();
  Tensor host = direct ? tensor : empty(tensor.shape(), {tensor.dtype(), Device::cpu()});
  if (!direct) copy_(host, tensor);
  file.write(host.raw_data(), static_cast<size_t>(host.bytes()));
}

// Groups of tensors, in order, each of at most `limit` bytes unless it is a single one.
std::vector<NamedTensors> cut_into_shards(const NamedTensors& tensors, int64_t limit) {
  std::vector<NamedTensors> shards(1);
  int64_t bytes = 0;
  for (const auto& named : tensors) {
    if (!shards.back().empty() && bytes + named.second.bytes() > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(named);
    bytes += named.second.bytes();
  }
  return shards;
}

bool is_shard_name(const std::string& name) {  // model-00001-of-00002.safetensors
  return name.size() == 32 && name.starts_with("model-") && name.substr(11, 4) == "-of-" &&
         name.ends_with(".safetensors") &&
         std::all_of(name.begin() + 6, name.begin() + 11, [](char c) { return c >= '0' && c <= '9'; }) &&
         std::all_of(name.begin() + 15, name.begin() + 20, [](char c) { return c >= '0' && c <= '9'; });
}

// What an earlier save of the same model left: a reader could not tell which of them counts.
void remove_stale(const fs::path& folder, const std::set<std::string>& written) {
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if ((name == "model.safetensors" || is_shard_name(name)) && !written.contains(name)) stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) fs::remove(path);
}

}  // namespace

void save_safetensors(const fs::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  check_names(path, tensors);
  std::vector<size_t> order = data_order(tensors);
  std::string header = header_text(path, tensors, order, metadata);
  uint64_t header_bytes = header.size(), total = 8 + header_bytes;
  for (const auto& [name, tensor] : tensors) total += static_cast<uint64_t>(tensor.bytes());
  AtomicFile file(path, total);
  file.write(&header_bytes, 8);
  file.write(header);
  for (size_t i : order) write_elements(file, tensors[i].second);
  file.commit();
}

void save_safetensors_sharded(const fs::path& folder, const NamedTensors& tensors, int64_t max_shard_bytes,
                              const std::map<std::string, std::string>& metadata) {
  check(max_shard_bytes > 0, "save_safetensors_sharded: max_shard_bytes must be positive, got {}", max_shard_bytes);
  check_names(folder, tensors);
  auto shards = cut_into_shards(tensors, max_shard_bytes);
  Json weight_map = Json::object();
  int64_t total = 0;
  std::set<std::string> written;
  for (size_t i = 0; i < shards.size(); ++i) {
    std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    save_safetensors(folder / name, shards[i], metadata);
    written.insert(name);
    for (const auto& [tensor_name, tensor] : shards[i]) {
      weight_map.set(tensor_name, name);
      total += tensor.bytes();
    }
  }
  Json index = Json::object();
  index.set("metadata", Json::object().set("total_size", total)).set("weight_map", weight_map);
  write_file_atomically(folder / "model.safetensors.index.json", index.dump(2) + '\n');
  remove_stale(folder, written);
}

}  // namespace strata
