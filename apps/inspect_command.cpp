// strata inspect: what is in a safetensors, GGUF or adapter file.
#include <fmt/ranges.h>

#include <map>

#include "apps/commands.h"
#include "apps/common/human.h"
#include "apps/common/table.h"
#include "apps/common/terminal.h"
#include "apps/inspect_file.h"
#include "tensor/error.h"

namespace strata::apps {

namespace {

struct Options {
  std::filesystem::path path;
  std::string filter;
  bool all = false, stats = false, json = false;
};

// [1, 2, 3] whole, longer ones by length; texts in quotes with their line ends visible.
std::string metadata_text(const Json& value) {
  constexpr size_t kShown = 8;
  if (value.is_array() && value.size() > kShown)
    return fmt::format("{} x {}", value.size(), value.items()[0].kind_name());
  return value.dump();
}

void print_metadata(const Json& metadata, int columns) {
  if (metadata.size() == 0) return;
  size_t width = 0;
  for (const auto& [key, value] : metadata.members()) width = std::max(width, key.size());
  width = std::min<size_t>(width, 44);
  fmt::print("\nMETADATA\n");
  for (const auto& [key, value] : metadata.members()) {
    if (value.is_null()) continue;
    std::string line = fmt::format("  {:<{}}  {}", key, width, metadata_text(value));
    fmt::print("{}\n", fit_columns(line, columns > 0 ? columns : 160));
  }
}

void print_types(const std::vector<StoredTensor>& tensors) {
  struct Sum {
    int64_t tensors = 0, values = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const StoredTensor& t : tensors) {
    for (Sum* sum : {&sums[t.type], &sums["\x7ftotal"]}) {  // sorts behind every type
      sum->tensors += 1;
      sum->values += t.readable ? numel(t.shape) : 0;
      sum->bytes += t.bytes;
    }
  }
  Table table({"type", "tensors", "values", "bytes"});
  for (const auto& [type, sum] : sums) {
    bool total = type == "\x7ftotal";
    if (total) table.rule();
    table.row({total ? "total" : type, fmt::format("{}", sum.tensors), human_count(static_cast<double>(sum.values)),
               human_bytes(static_cast<uint64_t>(sum.bytes))});
  }
  fmt::print("\n{}", table.text());
}

std::vector<std::string> stats_cells(const FileContents& contents, const StoredTensor& t) {
  if (!t.readable) return {"-", "-", "-", "-", "-"};
  ValueSummary s = summarize(contents.load(t.name));
  return {human_number(s.low), human_number(s.high), human_number(s.mean), human_number(s.deviation),
          fmt::format("{}", s.not_finite)};
}

void print_tensors(const FileContents& contents, const std::vector<StoredTensor>& tensors, const Options& options,
                   int columns) {
  std::vector<std::string> headers{"name", "type", "shape", "bytes"};
  if (options.stats) headers.insert(headers.end(), {"lowest", "highest", "mean", "deviation", "not finite"});
  Table table(headers);
  auto add = [&](const std::string& name, const StoredTensor& t, int64_t count) {
    std::string bytes = !t.readable ? "-" : human_bytes(static_cast<uint64_t>(t.bytes));
    std::vector<std::string> row{name, t.type, t.readable ? to_string(t.shape) : "cannot be read",
                                 count > 1 ? fmt::format("{} x {}", count, bytes) : bytes};
    if (options.stats)
      for (std::string& cell : stats_cells(contents, t)) row.push_back(std::move(cell));
    table.row(std::move(row));
  };
  if (options.all || options.stats)
    for (const StoredTensor& t : tensors) add(t.name, t, 1);
  else
    for (const TensorGroup& group : group_layers(tensors)) add(group.name, *group.first, group.count);
  fmt::print("\n{}", table.text(columns));
}

Json as_json(const FileContents& contents, const std::vector<StoredTensor>& tensors) {
  Json list = Json::array();
  for (const StoredTensor& t : tensors) {
    Json shape = Json::array();
    for (int64_t n : t.shape) shape.push(static_cast<long>(n));
    list.push(Json::object()
                  .set("name", t.name)
                  .set("type", t.type)
                  .set("shape", t.readable ? shape : Json())
                  .set("bytes", t.readable ? Json(static_cast<long>(t.bytes)) : Json()));
  }
  return Json::object()
      .set("file", contents.path.string())
      .set("format", contents.format)
      .set("file_bytes", contents.file_bytes)
      .set("metadata", contents.metadata)
      .set("tensors", list);
}

void inspect(const Options& options, const Invocation&) {
  FileContents contents = read_contents(options.path);
  std::vector<StoredTensor> tensors;
  for (const StoredTensor& t : contents.tensors)
    if (t.name.find(options.filter) != std::string::npos) tensors.push_back(t);
  check<UsageError>(options.filter.empty() || !tensors.empty(), "--filter: no tensor's name holds '{}'",
                    options.filter);
  if (options.json) {
    fmt::print("{}\n", valid_utf8(as_json(contents, tensors).dump(2)));
    return;
  }
  const int columns = terminal_columns(STDOUT_FILENO).value_or(0);
  fmt::print("{}: {}, {}\n", printable(contents.path.string()), contents.format, human_bytes(contents.file_bytes));
  for (const std::string& note : contents.notes) fmt::print("{}\n", printable(note));
  if (options.filter.empty()) print_metadata(contents.metadata, columns);
  if (tensors.empty()) return;
  print_types(tensors);
  print_tensors(contents, tensors, options, columns);
}

}  // namespace

Command inspect_command() {
  return make_command<Options>(
      {.name = "inspect",
       .description = "show what is in a safetensors, GGUF or adapter file",
       .examples = "{command} SmolLM2-135M-Instruct.Q4_1.gguf\n"
                   "{command} runs/my-run/adapter --stats\n"
                   "{command} model.safetensors --filter layers.0. --all",
       .details = "Layers that look alike share a line: model.layers.{0..29}.mlp.up_proj.weight."},
      [](Flags& flags, Options& o) {
        flags.positional("FILE", o.path, "a file, or the folder of a model or adapter").required().existing();
        flags.add("--filter", o.filter, "only tensors whose name holds this text");
        flags.add("--all", o.all, "a line for every tensor");
        flags.add("--stats", o.stats, "read the values: range, mean, deviation, how many are not finite");
        flags.add("--json", o.json, "print JSON, for scripts");
      },
      inspect);
}

}  // namespace strata::apps
