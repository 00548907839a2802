#include "models/adapters.h"

#include <algorithm>
#include <map>
#include <set>

#include "autograd/autograd.h"
#include "models/weight_files.h"
#include "tensor/create.h"
#include "tensor/io/safetensors.h"

namespace strata::models {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "base_model.model.";

std::string last_part(const std::string& path) {
  size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::vector<std::pair<std::string, std::shared_ptr<nn::LinearLayer>>> linear_layers(Decoder& model) {
  std::vector<std::pair<std::string, std::shared_ptr<nn::LinearLayer>>> all;
  model.for_each_module([&](const std::string& path, nn::Module& m) {
    if (dynamic_cast<nn::LinearLayer*>(&m) && !path.empty())
      all.emplace_back(path, std::dynamic_pointer_cast<nn::LinearLayer>(model.find(path)));
  });
  return all;
}

int64_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int64_t keep = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({keep, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Every listed target must exist: a misspelt one would silently train less of the model.
void check_targets_exist(const AdapterConfig& config, const std::vector<std::string>& paths) {
  std::set<std::string> kinds;
  for (const std::string& path : paths) kinds.insert(last_part(path));
  for (const std::string& target : config.target_modules) {
    bool found = std::any_of(paths.begin(), paths.end(),
                             [&](const std::string& path) { return path == target || path.ends_with("." + target); });
    if (found) continue;
    std::vector<std::string> nearest(kinds.begin(), kinds.end());
    std::stable_sort(nearest.begin(), nearest.end(), [&](const std::string& a, const std::string& b) {
      return edit_distance(a, target) < edit_distance(b, target);
    });
    nearest.resize(std::min<size_t>(nearest.size(), 3));
    fail<UsageError>("lora: target '{}' matches no linear layer of the model; nearest: {}", target,
                     fmt::join(nearest, ", "));
  }
  check<UsageError>(!config.target_modules.empty() || !config.target_pattern.empty(), "lora: no target modules given");
}

}  // namespace

std::vector<TargetCount> add_lora(Decoder& model, const AdapterConfig& config, uint64_t seed) {
  auto layers = linear_layers(model);
  std::vector<std::string> paths;
  for (const auto& [path, layer] : layers) {
    check(!dynamic_cast<nn::LoraLinear*>(layer.get()), "lora: the model has an adapter already ('{}')", path);
    paths.push_back(path);
  }
  check_targets_exist(config, paths);
  model.freeze();
  std::vector<TargetCount> counts;
  int64_t matched = 0;
  for (const auto& [path, layer] : layers) {
    std::string kind = last_part(path);
    auto count = std::find_if(counts.begin(), counts.end(), [&](const TargetCount& c) { return c.kind == kind; });
    if (count == counts.end()) count = counts.insert(counts.end(), TargetCount{kind, 0, 0});
    ++count->total;
    if (!config.targets(path)) continue;
    Generator generator(derive_seed(seed, path + ".lora_A.weight"));
    auto wrapped = std::make_shared<nn::LoraLinear>(layer, config.options_for(path), generator);
    wrapped->train(model.training());
    model.replace(path, wrapped);
    ++count->matched;
    ++matched;
  }
  check<UsageError>(matched > 0, "lora: '{}' matches no linear layer of the model", config.target_pattern);
  return counts;
}

std::vector<std::pair<std::string, nn::LoraLinear*>> lora_layers(Decoder& model) {
  std::vector<std::pair<std::string, nn::LoraLinear*>> all;
  model.for_each_module([&](const std::string& path, nn::Module& m) {
    if (auto* lora = dynamic_cast<nn::LoraLinear*>(&m)) all.emplace_back(path, lora);
  });
  return all;
}

void enable_lora(Decoder& model, bool on) {
  for (auto& [path, layer] : lora_layers(model)) layer->enable(on);
}

std::vector<std::pair<std::string, Tensor>> adapter_tensors(Decoder& model) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (auto& [path, layer] : lora_layers(model)) {
    tensors.emplace_back(kPrefix + path + ".lora_A.weight", layer->a);
    tensors.emplace_back(kPrefix + path + ".lora_B.weight", layer->b);
  }
  return tensors;
}

void save_adapter(Decoder& model, const AdapterConfig& config, const fs::path& folder, const Json& extra) {
  fs::create_directories(folder);
  save_safetensors(folder / "adapter_model.safetensors", adapter_tensors(model), {{"format", "pt"}});
  if (!extra.is_null()) save_text_file(folder / "strata_adapter.json", extra.dump(2) + "\n");
  save_text_file(folder / "adapter_config.json", config.to_json().dump(2) + "\n");
}

namespace {

// All names first, then shapes: an adapter of another base is told from a damaged file.
void check_fit(const fs::path& file, const SafetensorsFile& given,
               const std::vector<std::pair<std::string, Tensor>>& wanted) {
  nn::LoadReport report;
  std::set<std::string> names;
  for (const auto& [name, tensor] : wanted) {
    names.insert(name);
    if (!given.contains(name)) report.missing.push_back(name);
  }
  for (const TensorInfo& info : given.tensors())
    if (!names.contains(info.name)) report.unexpected.push_back(info.name);
  check<FormatError>(report.ok(), "{}: the tensors do not fit adapter_config.json and the model: {}", file.string(),
                     report.text());
  for (const auto& [name, tensor] : wanted) {
    Dims got = given.tensor(name).shape();
    check<FormatError>(got == tensor.shape(),
                       "{}: the adapter belongs to another base model or rank: '{}' must have shape {}, got {}",
                       file.string(), name, tensor.shape(), got);
  }
}

}  // namespace

LoadedAdapter load_adapter(Decoder& model, const fs::path& folder) {
  check(fs::is_directory(folder), "{}: an adapter is a folder with adapter_config.json and adapter_model.safetensors",
        folder.string());
  check(fs::exists(folder / "adapter_config.json"), "{}: adapter_config.json is missing", folder.string());
  fs::path file = folder / "adapter_model.safetensors";
  check(fs::exists(file), "{}: adapter_model.safetensors is missing{}", folder.string(),
        fs::exists(folder / "adapter_model.bin") ? " (adapter_model.bin, a pickle, is not read: save as safetensors)"
                                                 : "");
  LoadedAdapter loaded;
  loaded.config = AdapterConfig::from_json(Json::parse_file(folder / "adapter_config.json"), loaded.warnings);
  SafetensorsFile given = SafetensorsFile::open(file);
  try {
    loaded.targets = add_lora(model, loaded.config, 0);
  } catch (const UsageError& e) {
    fail<FormatError>("{}: the adapter does not fit the model: {}", (folder / "adapter_config.json").string(),
                      e.what());
  }
  auto wanted = adapter_tensors(model);
  check_fit(file, given, wanted);
  bool effect = false;
  for (auto& [name, tensor] : wanted) {
    copy_(tensor, given.tensor(name));
    if (!name.ends_with(".lora_B.weight")) continue;
    for (float v : to_vector<float>(tensor)) effect = effect || v != 0;
  }
  if (!effect) loaded.warnings.push_back("every lora_B is zero: the adapter has no effect");
  if (fs::exists(folder / "strata_adapter.json")) loaded.extra = Json::parse_file(folder / "strata_adapter.json");
  return loaded;
}

}  // namespace strata::models
