#include "apps/inspect_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "models/adapters.h"
#include "tensor/create.h"
#include "tensor/error.h"
#include "tensor/io/gguf.h"
#include "tensor/io/safetensors.h"

namespace strata::apps {

namespace fs = std::filesystem;

namespace {

// Digits compare as numbers: layers.2 comes before layers.10.
bool natural_less(const std::string& a, const std::string& b) {
  auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t i_end = i, j_end = j;
      while (i_end < a.size() && digit(a[i_end])) ++i_end;
      while (j_end < b.size() && digit(b[j_end])) ++j_end;
      if (i_end - i != j_end - j) return i_end - i < j_end - j;
      int order = a.compare(i, i_end - i, b, j, j_end - j);
      if (order != 0) return order < 0;
      i = i_end;
      j = j_end;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

FileContents read_safetensors(const fs::path& path) {
  auto file = SafetensorsFile::open(path);
  FileContents contents{.format = "safetensors", .path = path};
  std::set<fs::path> shards;
  for (const TensorInfo& t : file.tensors()) {
    contents.tensors.push_back({t.name, std::string(dtype_name(t.dtype)), t.shape, t.bytes, true});
    shards.insert(t.file);
  }
  for (const UnsupportedTensor& t : file.unsupported()) {
    contents.tensors.push_back({t.name, t.dtype, {}, 0, false});
    shards.insert(t.file);
  }
  if (shards.empty()) shards.insert(path);  // a file without tensors is legal
  if (shards.size() > 1) contents.format += fmt::format(", {} shards", shards.size());
  for (const fs::path& shard : shards) contents.file_bytes += fs::file_size(shard);
  for (const auto& [key, value] : file.metadata()) contents.metadata.set(key, value);
  contents.load = [file](const std::string& name) { return file.tensor(name); };
  std::sort(contents.tensors.begin(), contents.tensors.end(),
            [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  return contents;
}

// Of every part, if the name is that of the first part of a split model (NAME-00001-of-00003.gguf).
uint64_t gguf_bytes(const fs::path& path) {
  const std::string name = path.string();
  const size_t first = name.rfind("-00001-of-");
  if (first == std::string::npos) return fs::file_size(path);
  uint64_t bytes = 0;
  for (int part = 1;; ++part) {
    fs::path file = name.substr(0, first) + fmt::format("-{:05}", part) + name.substr(first + 6);
    if (!fs::exists(file)) return bytes;
    bytes += fs::file_size(file);
  }
}

FileContents read_gguf(const fs::path& path) {
  auto file = GgufFile::open(path);
  FileContents contents{.format = "GGUF", .path = path, .file_bytes = gguf_bytes(path)};
  for (const GgufTensorInfo& t : file.tensors()) contents.tensors.push_back({t.name, t.type, t.shape, t.bytes, true});
  contents.metadata = file.metadata();
  contents.load = [file](const std::string& name) { return file.tensor_f32(name); };
  return contents;
}

// In words what adapter_config.json says. An adapter that cannot be used here can still be looked at.
std::vector<std::string> adapter_notes(const Json& json) {
  std::vector<std::string> notes;
  try {
    auto config = models::AdapterConfig::from_json(json, notes);
    std::string targets = config.target_pattern.empty() ? fmt::format("{}", fmt::join(config.target_modules, ", "))
                                                        : config.target_pattern;
    std::string base = config.base_model.empty() ? "a model without a name" : config.base_model;
    notes.insert(notes.begin(), fmt::format("LoRA of {}: rank {}, alpha {}, scale {:.4g}{} on {}", base, config.lora.r,
                                            config.lora.alpha, config.lora.scale(),
                                            config.lora.use_rslora ? " (rank-stabilised)" : "", targets));
  } catch (const FormatError& e) {
    notes.push_back(fmt::format("cannot be used here: {}", e.what()));
  }
  return notes;
}

// A folder's configuration stands for the file's own metadata, which says little ("format": "pt").
FileContents read_folder(const fs::path& folder) {
  if (fs::exists(folder / "adapter_model.safetensors")) {
    FileContents contents = read_safetensors(folder / "adapter_model.safetensors");
    contents.format = "PEFT adapter (safetensors)";
    contents.path = folder;
    if (!fs::exists(folder / "adapter_config.json")) return contents;
    contents.metadata = Json::parse_file(folder / "adapter_config.json");
    contents.notes = adapter_notes(contents.metadata);
    return contents;
  }
  bool model = fs::exists(folder / "model.safetensors") || fs::exists(folder / "model.safetensors.index.json");
  check<UsageError>(model,
                    "inspect: {} holds none of model.safetensors, model.safetensors.index.json and "
                    "adapter_model.safetensors; name the file",
                    folder.string());
  FileContents contents = read_safetensors(folder);
  if (fs::exists(folder / "config.json")) contents.metadata = Json::parse_file(folder / "config.json");
  return contents;
}

bool starts_with_magic(const fs::path& path, const std::string& magic) {
  std::ifstream in(path, std::ios::binary);
  std::string start(magic.size(), '\0');
  return in.read(start.data(), static_cast<std::streamsize>(start.size())) && start == magic;
}

// The name with each number between dots replaced by "*", and the numbers.
std::pair<std::string, std::vector<int64_t>> pattern_of(const std::string& name) {
  std::string pattern;
  std::vector<int64_t> numbers;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = name.find('.', begin);
    std::string part = name.substr(begin, end - begin);
    int64_t number = 0;
    auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    bool is_number = error == std::errc() && stop == part.data() + part.size() && number >= 0;
    if (is_number) numbers.push_back(number);
    pattern += (begin > 0 ? "." : "") + (is_number ? std::string("*") : part);
  }
  return {pattern, numbers};
}

// 0,1,2,5 -> "0..2,5".
std::string ranges_text(const std::set<int64_t>& numbers) {
  std::vector<std::string> parts;
  for (auto it = numbers.begin(); it != numbers.end();) {
    int64_t first = *it, last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    parts.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}..{}", first, last));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

FileContents read_contents(const fs::path& path) {
  check<UsageError>(fs::exists(path), "inspect: no such file or folder, got '{}'", path.string());
  if (fs::is_directory(path)) return read_folder(path);
  if (path.extension() == ".gguf" || starts_with_magic(path, "GGUF")) return read_gguf(path);
  bool safetensors = path.extension() == ".safetensors" || path.string().ends_with(".safetensors.index.json");
  check<UsageError>(safetensors, "inspect: expected a .safetensors or .gguf file or a model folder, got '{}'",
                    path.string());
  return read_safetensors(path);
}

std::vector<TensorGroup> group_layers(const std::vector<StoredTensor>& tensors) {
  struct Numbered {
    TensorGroup group{};
    std::string pattern;
    std::vector<std::set<int64_t>> numbers;  // per "*"
  };
  std::vector<Numbered> found;
  std::map<std::string, size_t> index;  // pattern, type and shape -> found
  for (const StoredTensor& t : tensors) {
    auto [pattern, numbers] = pattern_of(t.name);
    auto [at, is_new] = index.emplace(fmt::format("{}\n{}\n{}", pattern, t.type, to_string(t.shape)), found.size());
    if (is_new) found.emplace_back();
    Numbered& entry = found[at->second];
    if (is_new) {
      entry.group = {t.name, &t, 0};
      entry.pattern = pattern;
      entry.numbers.resize(numbers.size());
    }
    ++entry.group.count;
    for (size_t i = 0; i < numbers.size(); ++i) entry.numbers[i].insert(numbers[i]);
  }
  std::vector<TensorGroup> groups;
  for (Numbered& entry : found) {
    if (entry.group.count > 1) {
      entry.group.name.clear();
      size_t star = 0;
      for (char c : entry.pattern)
        entry.group.name += c == '*' && star < entry.numbers.size() ? "{" + ranges_text(entry.numbers[star++]) + "}"
                                                                    : std::string(1, c);
    }
    groups.push_back(entry.group);
  }
  return groups;
}

ValueSummary summarize(const Tensor& t) {
  const double nan = std::nan("");
  ValueSummary s{nan, nan, nan, nan, 0};
  std::vector<double> values = to_vector<double>(t);
  auto end = std::partition(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  s.not_finite = values.end() - end;
  const auto n = static_cast<double>(end - values.begin());
  if (n == 0) return s;
  auto [low, high] = std::minmax_element(values.begin(), end);
  double sum = 0, squares = 0;
  for (auto it = values.begin(); it != end; ++it) sum += *it;
  s = {*low, *high, sum / n, 0, s.not_finite};
  for (auto it = values.begin(); it != end; ++it) squares += (*it - s.mean) * (*it - s.mean);
  s.deviation = std::sqrt(squares / n);
  return s;
}

}  // namespace strata::apps
