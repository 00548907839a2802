#include "apps/finetune/dataset.h"

#include "apps/common/human.h"
#include "apps/common/table.h"

namespace strata::apps {

namespace {

std::vector<data::Conversation> pick(const std::vector<data::Conversation>& records,
                                     const std::vector<int64_t>& which) {
  std::vector<data::Conversation> out;
  for (int64_t i : which) out.push_back(records[static_cast<size_t>(i)]);
  return out;
}

data::TooLong too_long_policy(const std::string& name) {
  if (name == "error") return data::TooLong::error;
  return name == "skip" ? data::TooLong::skip : data::TooLong::truncate;
}

std::string digest_of(const std::vector<data::Conversation>& records) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&](const std::string& text) {
    for (char c : text + '\x1f') hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  };
  for (const data::Conversation& r : records)
    for (const data::Turn& t : r.turns) {
      mix(t.content);
      mix(t.input);
    }
  return fmt::format("{:016x}", hash);
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

}  // namespace

FinetuneData read_finetune_data(const FinetuneOptions& options, const data::Template& form, int64_t context) {
  FinetuneData d;
  d.set = data::read_records(
      options.data, {.bad_records = options.skip_bad_records ? data::BadRecords::skip : data::BadRecords::error});
  data::SplitOptions split = options.split;
  split.seed = options.common.seed;
  d.split = data::split_records(static_cast<int64_t>(d.set.records.size()), split);
  d.leakage = data::find_leakage(d.set.records, d.split);
  data::EncodeSettings settings{.max_length = std::min(options.max_length, context),
                                .too_long = too_long_policy(options.too_long)};
  d.train = data::encode_records(pick(d.set.records, d.split.train), form, settings);
  if (!d.split.validation.empty())
    d.validation = data::encode_records(pick(d.set.records, d.split.validation), form, settings);
  d.held_out = pick(d.set.records, d.split.test);
  d.digest = digest_of(d.set.records);
  return d;
}

std::string describe_run(const FinetuneOptions& options, ReadyModel& ready, const FinetuneData& d,
                         const std::vector<models::TargetCount>& targets, int64_t micro_batches, int64_t total_steps) {
  std::string out;
  auto line = [&](const std::string& text) { out += text + "\n"; };
  line("model      " + describe_model(ready));
  line(fmt::format("template   {} ({})", ready.form->name(), ready.template_reason));
  line(fmt::format("data       {}: {} records -> {} train, {} validation, {} held out", options.data.string(),
                   d.set.records.size(), d.train.records.size(), d.validation.records.size(), d.held_out.size()));
  out += d.set.report.text();
  out += d.train.report.text();
  size_t leaked = d.leakage.validation.size() + d.leakage.test.size();
  if (leaked > 0)
    line(fmt::format("warning: {} held-out records also stand in the training part; held-out figures look too good",
                     leaked));
  int64_t trained = 0;
  Table table({"module", "adapted", "of", "trainable parameters"});
  for (const models::TargetCount& t : targets) {
    int64_t count = 0;
    for (auto& [path, layer] : models::lora_layers(ready.model()))
      if (last_part(path) == t.kind) count += layer->a.numel() + layer->b.numel();
    trained += count;
    table.row({t.kind, std::to_string(t.matched), std::to_string(t.total), human_count(static_cast<double>(count))});
  }
  line("");
  out += table.text();
  int64_t all = ready.model().parameter_count() + ready.model().quantized_values();  // with the adapter's own
  line(fmt::format("trainable  {} of {} parameters ({:.2f} %)", human_count(static_cast<double>(trained)),
                   human_count(static_cast<double>(all)),
                   100.0 * static_cast<double>(trained) / static_cast<double>(all)));
  int64_t tokens = d.train.report.lengths.total, counted = d.train.report.counted.total;
  double steps_an_epoch = static_cast<double>(data::steps_per_epoch(micro_batches, options.accumulation));
  line(fmt::format(
      "tokens     {} an epoch, {} of them counted in the loss ({:.0f} %); about {:.0f} tokens ({:.0f} counted) a step",
      tokens, counted, 100.0 * static_cast<double>(counted) / static_cast<double>(std::max<int64_t>(tokens, 1)),
      static_cast<double>(tokens) / steps_an_epoch, static_cast<double>(counted) / steps_an_epoch));
  line(fmt::format("steps      {} optimizer steps: {} epoch(s) of {} micro-batches of {} records, {} a step",
                   total_steps, options.epochs, micro_batches, options.batch, options.accumulation));
  line("one record as the model sees it, what the loss counts between brackets:");
  for (const std::string& l : wrap_text(data::describe_record(d.train.records.front(), ready.tokenizer()), 110))
    line("  | " + printable(l));
  return out;
}

}  // namespace strata::apps
