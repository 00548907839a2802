// strata inspect: what is in a safetensors file, a GGUF file, a model folder or an adapter.
#include <algorithm>
#include <map>

#include "apps/commands.h"
#include "apps/common/human.h"
#include "apps/common/table.h"
#include "apps/print.h"
#include "models/adapters.h"
#include "tensor/io/gguf.h"
#include "tensor/io/safetensors.h"

namespace strata::apps {

namespace fs = std::filesystem;

namespace {

struct InspectOptions {
  fs::path file;
  bool all = false;
};

constexpr size_t kShown = 40;

struct Row {
  std::string name, type, shape;
  int64_t values, bytes;
};

void print_tensors(std::vector<Row> rows, bool all) {
  std::map<std::string, std::array<int64_t, 3>> by_type;  // tensors, values, bytes
  int64_t values = 0, bytes = 0;
  for (const Row& r : rows) {
    auto& t = by_type[r.type];
    ++t[0], t[1] += r.values, t[2] += r.bytes;
    values += r.values, bytes += r.bytes;
  }
  Table types({"type", "tensors", "values", "bytes"});
  for (const auto& [type, t] : by_type)
    types.row(
        {type, std::to_string(t[0]), human_count(static_cast<double>(t[1])), human_bytes(static_cast<uint64_t>(t[2]))});
  types.rule().row({"total", std::to_string(rows.size()), human_count(static_cast<double>(values)),
                    human_bytes(static_cast<uint64_t>(bytes))});
  print_line(types.text());
  Table table({"tensor", "type", "shape", "bytes"});
  size_t n = all ? rows.size() : std::min(rows.size(), kShown);
  for (size_t i = 0; i < n; ++i)
    table.row(
        {printable(rows[i].name), rows[i].type, rows[i].shape, human_bytes(static_cast<uint64_t>(rows[i].bytes))});
  print_text(table.text());
  if (n < rows.size()) print_line(fmt::format("... and {} more; --all shows them", rows.size() - n));
}

std::string short_value(const Json& value) {
  if (value.is_array() && value.size() > 8) return fmt::format("[{} values]", value.size());
  return fit_columns(value.dump(), 100);
}

void inspect_gguf(const fs::path& path, bool all) {
  GgufFile file = GgufFile::open(path);
  print_line(fmt::format("{}: GGUF, {}", path.string(), human_bytes(fs::file_size(path))));
  Table table({"key", "value"});
  for (const auto& [key, value] : file.metadata().members()) table.row({printable(key), short_value(value)});
  print_line(table.text());
  std::vector<Row> rows;
  for (const GgufTensorInfo& t : file.tensors())
    rows.push_back({t.name, t.type, to_string(t.shape), numel(t.shape), t.bytes});
  print_tensors(std::move(rows), all);
}

void inspect_safetensors(const fs::path& path, bool all) {
  SafetensorsFile file = SafetensorsFile::open(path);
  print_line(fmt::format("{}: safetensors", path.string()));
  for (const auto& [key, value] : file.metadata())
    print_line(fmt::format("  {} = {}", printable(key), fit_columns(value, 100)));
  std::vector<Row> rows;
  for (const TensorInfo& t : file.tensors())
    rows.push_back({t.name, std::string(dtype_name(t.dtype)), to_string(t.shape), numel(t.shape), t.bytes});
  print_tensors(std::move(rows), all);
}

void inspect_adapter(const fs::path& folder, bool all) {
  std::vector<std::string> warnings;
  models::AdapterConfig config =
      models::AdapterConfig::from_json(Json::parse_file(folder / "adapter_config.json"), warnings);
  print_line(fmt::format("{}: LoRA adapter of {}", folder.string(),
                         config.base_model.empty() ? "an unnamed base model" : printable(config.base_model)));
  std::string targets =
      config.target_pattern.empty() ? fmt::format("{}", fmt::join(config.target_modules, ", ")) : config.target_pattern;
  print_line(fmt::format("rank {}, alpha {}, scale {:.4g}{}, dropout {}, targets {}", config.lora.r, config.lora.alpha,
                         config.lora.scale(), config.lora.use_rslora ? " (rank-stabilised)" : "", config.lora.dropout,
                         targets));
  for (const std::string& w : warnings) print_line("warning: " + w);
  inspect_safetensors(folder / "adapter_model.safetensors", all);
}

void inspect(const InspectOptions& options, const Invocation&) {
  const fs::path& path = options.file;
  if (fs::is_directory(path)) {
    if (fs::exists(path / "adapter_config.json")) return inspect_adapter(path, options.all);
    if (fs::exists(path / "config.json")) {
      print_line(fmt::format("{}: model folder", path.string()));
      Json config = Json::parse_file(path / "config.json");
      for (const auto& [key, value] : config.members())
        print_line(fmt::format("  {} = {}", printable(key), short_value(value)));
    }
    return inspect_safetensors(path, options.all);
  }
  if (path.extension() == ".gguf") return inspect_gguf(path, options.all);
  inspect_safetensors(path, options.all);
}

}  // namespace

Command inspect_command() {
  return make_command<InspectOptions>(
      {.name = "inspect",
       .description = "show what is in a model file, a model folder or an adapter",
       .examples = "{command} model.safetensors\n{command} SmolLM2.gguf --all\n"
                   "{command} runs/2026-01-31-142530-finetune-lora-3f9a/adapter"},
      [](Flags& flags, InspectOptions& o) {
        flags.positional("FILE", o.file, "safetensors, index, GGUF or folder").required().existing();
        flags.add("--all", o.all, "every tensor, not only the first 40");
      },
      inspect);
}

}  // namespace strata::apps
