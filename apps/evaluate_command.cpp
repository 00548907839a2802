// strata evaluate: perplexity of a text, or the loss on instruction records; with an adapter, beside the base model.
#include <cmath>
#include <fstream>
#include <sstream>

#include "apps/commands.h"
#include "apps/common/common_flags.h"
#include "apps/common/human.h"
#include "apps/common/progress.h"
#include "apps/common/table.h"
#include "apps/model_flags.h"
#include "apps/print.h"
#include "autograd/autograd.h"
#include "tensor/create.h"

namespace strata::apps {

namespace {

struct EvaluateOptions {
  CommonOptions common;
  ModelOptions model;
  std::filesystem::path text;
  std::filesystem::path data;
  int64_t window = 512;
  int64_t most_windows = 0;
  int64_t batch = 8;
};

struct Score {
  double nll = 0;
  int64_t counted = 0;
  double mean() const { return nll / static_cast<double>(counted); }
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "{}: cannot open file", path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The text cut into windows that do not overlap; the first token of each is given, the others are predicted.
std::vector<data::EncodedRecord> text_windows(const EvaluateOptions& options, ReadyModel& ready) {
  std::vector<int32_t> ids = ready.tokenizer().encode(read_file(options.text));
  check<UsageError>(options.window <= ready.model().config().max_positions, "--window {}: the model's context is {}",
                    options.window, ready.model().config().max_positions);
  std::vector<data::EncodedRecord> windows;
  for (size_t at = 0; at + 1 < ids.size(); at += static_cast<size_t>(options.window)) {
    if (options.most_windows > 0 && static_cast<int64_t>(windows.size()) == options.most_windows) break;
    size_t end = std::min(ids.size(), at + static_cast<size_t>(options.window));
    data::EncodedRecord w;
    w.ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(at), ids.begin() + static_cast<std::ptrdiff_t>(end));
    w.counted.assign(w.ids.size(), 1);
    w.index = static_cast<int64_t>(windows.size());
    if (w.ids.size() >= 2) windows.push_back(std::move(w));
  }
  check(!windows.empty(), "{}: fewer than two tokens", options.text.string());
  return windows;
}

Score score(const EvaluateOptions& options, ReadyModel& ready, const std::vector<data::EncodedRecord>& records,
            const std::string& title) {
  NoGrad off;
  Score total;
  Progress progress({.title = title, .unit = "text", .total = static_cast<int64_t>(records.size())});
  for (size_t at = 0; at < records.size(); at += static_cast<size_t>(options.batch)) {
    std::vector<int64_t> positions;
    for (size_t i = at; i < std::min(records.size(), at + static_cast<size_t>(options.batch)); ++i)
      positions.push_back(static_cast<int64_t>(i));
    ModelBatch batch = to_model_batch(data::ragged_batch(records, positions));
    total.nll += ready.model().loss_sum(batch.tokens, batch.targets).item();
    total.counted += batch.counted;
    ProgressColumns columns;
    if (total.counted > 0) columns = {{"nll", human_number(total.mean())}};
    progress.update(static_cast<int64_t>(at + positions.size()), columns);
  }
  progress.finish();
  return total;
}

void evaluate(const EvaluateOptions& options, const Invocation&) {
  ReadyModel ready = load_ready_model(options.model);
  for (const std::string& note : ready.notes) print_line("note: " + note);
  std::vector<data::EncodedRecord> records;
  if (!options.text.empty()) {
    records = text_windows(options, ready);
  } else {
    data::DataSet set = data::read_records(options.data);
    data::EncodedSet encoded =
        data::encode_records(set.records, *ready.form, {.max_length = ready.model().config().max_positions});
    print_text(encoded.report.text());
    records = std::move(encoded.records);
  }
  Table table({"model", "tokens", "nll", "perplexity"});
  auto add = [&](const std::string& name, const Score& s) {
    if (s.counted == 0)
      table.row({name, "0", "n/a", "n/a"});
    else
      table.row({name, std::to_string(s.counted), fmt::format("{:.6f}", s.mean()),
                 fmt::format("{:.4f}", std::exp(s.mean()))});
  };
  if (ready.adapter) {
    models::enable_lora(ready.model(), false);
    add("base", score(options, ready, records, "base"));
    models::enable_lora(ready.model(), true);
    add("tuned", score(options, ready, records, "tuned"));
  } else {
    add(ready.loaded.name, score(options, ready, records, "evaluate"));
  }
  print_text(table.text());
}

}  // namespace

Command evaluate_command() {
  return make_command<EvaluateOptions>(
      {.name = "evaluate",
       .description = "measure a model: perplexity of a text, or loss on instruction records",
       .examples = "{command} --model m.gguf --text wikitext2-test.txt\n"
                   "{command} --model m.gguf --adapter runs/.../adapter --data held-out.json",
       .details =
           "Perplexity: the text is cut into windows that do not overlap; the first token of each window is given, "
           "all others are predicted; exp of the mean over all predicted tokens."},
      [](Flags& flags, EvaluateOptions& o) {
        add_model_flags(flags, o.model, true);
        flags.section("what to measure");
        flags.add("--text", o.text, "plain text").existing();
        flags.add("-d,--data", o.data, "instruction records").existing();
        flags.add("--window", o.window, "tokens of a window of --text").at_least(2);
        flags.add("--windows", o.most_windows, "only the first windows").at_least(0).default_text("all");
        flags.add("--batch", o.batch, "texts at once").at_least(1);
        add_common_flags(flags, o.common);
        flags.check_after([&o] {
          check<UsageError>(o.text.empty() != o.data.empty(), "evaluate: give --text or --data, one of the two");
        });
      },
      evaluate);
}

}  // namespace strata::apps
