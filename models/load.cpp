#include "models/load.h"

#include <algorithm>
#include <cstring>

#include "models/weight_files.h"
#include "tensor/create.h"
#include "tensor/io/safetensors.h"

namespace strata::models {

namespace fs = std::filesystem;

namespace {

void add_ids(std::vector<int64_t>& ids, const std::vector<int64_t>& more) {
  for (int64_t id : more)
    if (id >= 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

// generation_config.json lists further end tokens (one id or several).
std::vector<int64_t> generation_config_eos(const fs::path& folder) {
  fs::path file = folder / "generation_config.json";
  if (!fs::exists(file)) return {};
  Json config = Json::parse_file(file);
  const Json* eos = config.find("eos_token_id");
  if (!eos || eos->is_null()) return {};
  if (!eos->is_array()) return {config.get<int64_t>("eos_token_id")};
  std::vector<int64_t> ids;
  for (const Json& id : eos->items()) ids.push_back(id.as_int());
  return ids;
}

// Names, shapes and the first bytes of every tensor: tells checkpoints apart without reading them whole.
std::string digest(Decoder& model) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&](const void* bytes, size_t n) {
    for (size_t i = 0; i < n; ++i) hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
  };
  auto mix_tensor = [&](const std::string& name, const Tensor& t) {
    mix(name.data(), name.size());
    mix(t.raw_data(), static_cast<size_t>(std::min<int64_t>(t.bytes(), 256)));
  };
  for (const auto& p : model.named_parameters()) mix_tensor(p.name, p.tensor);
  model.for_each_module([&](const std::string& name, nn::Module& m) {
    if (auto* q = dynamic_cast<nn::QuantizedLinear*>(&m)) mix_tensor(name, q->weight.bytes);
    if (auto* e = dynamic_cast<nn::QuantizedEmbedding*>(&m)) mix_tensor(name, e->weight.bytes);
  });
  return fmt::format("{:016x}", hash);
}

void finish(LoadedModel& loaded, FileWeights& weights) {
  weights.check_complete();
  loaded.model->freeze();
  loaded.model->eval();
  loaded.notes = weights.notes();
  loaded.model->notes = loaded.notes;
  loaded.weights_digest = digest(*loaded.model);
  add_ids(loaded.stop_ids, loaded.model->config().eos);
  if (!loaded.tokenizer) return;
  loaded.chat_template = loaded.tokenizer->chat_template();
  if (auto eos = loaded.tokenizer->eos()) add_ids(loaded.stop_ids, {*eos});
  int64_t vocabulary = loaded.tokenizer->vocab_size();
  check<FormatError>(vocabulary <= loaded.model->config().vocab_size,
                     "{}: the tokenizer has {} tokens but the model's vocabulary only {}", loaded.name, vocabulary,
                     loaded.model->config().vocab_size);
}

LoadedModel load_hf(const fs::path& folder) {
  LoadedModel loaded;
  loaded.name = folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
  loaded.format = "safetensors";
  DecoderConfig config = DecoderConfig::from_hf(Json::parse_file(folder / "config.json"));
  SafetensorsWeights weights(SafetensorsFile::open(folder), config);
  loaded.model = std::make_shared<Decoder>(config, weights);
  bool has_tokenizer = fs::exists(folder / "tokenizer.json") || fs::exists(folder / "tokenizer.json.gz");
  if (has_tokenizer) loaded.tokenizer = text::Tokenizer::from_file(folder);
  add_ids(loaded.stop_ids, generation_config_eos(folder));
  finish(loaded, weights);
  return loaded;
}

LoadedModel load_gguf(const fs::path& path, LoadOptions options) {
  LoadedModel loaded;
  loaded.name = path.filename().string();
  loaded.format = "gguf";
  GgufFile file = GgufFile::open(path);
  DecoderConfig config = DecoderConfig::from_gguf(file.metadata(), file.find("output.weight") != nullptr);
  GgufWeights weights(file, config, options.dequantize, path.string());
  config.rope_divisors = weights.rope_divisors();
  loaded.model = std::make_shared<Decoder>(config, weights);
  if (file.metadata().contains("tokenizer.ggml.model")) loaded.tokenizer = text::Tokenizer::from_gguf(file.metadata());
  finish(loaded, weights);
  return loaded;
}

}  // namespace

LoadedModel load_model(const fs::path& path, LoadOptions options) {
  check(fs::exists(path), "{}: no such file or folder", path.string());
  if (fs::is_directory(path)) {
    if (fs::exists(path / "config.json")) return load_hf(path);
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".gguf") found.push_back(entry.path());
    check(found.size() == 1, "{}: expected config.json with safetensors, or one .gguf file, got {} .gguf files",
          path.string(), found.size());
    return load_gguf(found[0], options);
  }
  if (path.extension() == ".gguf") return load_gguf(path, options);
  check(path.extension() == ".safetensors" || path.filename() == "config.json",
        "{}: a model is a folder with config.json and safetensors, or a .gguf file", path.string());
  return load_hf(fs::absolute(path).parent_path());
}

void make_trainable(Decoder& model) {
  MemoryKindScope kind(MemoryKind::parameter);
  for (const auto& p : model.named_parameters())
    if (!p.tensor.storage()->writable()) p.tensor.rebind(clone_data(p.tensor));
  model.set_trainable(true);
}

void save_model(const Decoder& model, const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& p : model.named_parameters()) tensors.emplace_back(p.name, p.tensor);
  const_cast<Decoder&>(model).for_each_module([&](const std::string& name, nn::Module& m) {
    if (auto* q = dynamic_cast<nn::QuantizedLinear*>(&m)) tensors.emplace_back(name + ".weight", dequantize(q->weight));
    if (auto* e = dynamic_cast<nn::QuantizedEmbedding*>(&m))
      tensors.emplace_back(name + ".weight", dequantize(e->weight));
  });
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  constexpr int64_t kShard = int64_t{4} << 30;
  int64_t total = 0;
  for (const auto& t : tensors) total += t.second.bytes();
  if (total > kShard)
    save_safetensors_sharded(folder, tensors, kShard, {{"format", "pt"}});
  else
    save_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  save_text_file(folder / "config.json", model.config().to_hf().dump(2) + "\n");
}

}  // namespace strata::models
