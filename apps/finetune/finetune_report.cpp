#include "apps/finetune/finetune_report.h"

#include "apps/common/human.h"
#include "apps/common/report.h"
#include "apps/finetune/answers.h"

namespace strata::apps {

namespace {

Series step_series(const std::string& name, const LoraTrainer& trainer, double StepRecord::*value) {
  Series s{name, {}, {}};
  for (const StepRecord& r : trainer.steps()) {
    s.x.push_back(static_cast<double>(r.step));
    s.y.push_back(r.*value);
  }
  return s;
}

Series validation_series(const LoraTrainer& trainer) {
  Series s{"validation", {}, {}};
  for (const ValidationRecord& v : trainer.validations()) {
    s.x.push_back(static_cast<double>(v.step));
    s.y.push_back(v.loss);
  }
  return s;
}

double mean_rate(const LoraTrainer& trainer) {
  double sum = 0;
  for (const StepRecord& r : trainer.steps()) sum += 1 / r.tokens_per_second;
  return trainer.steps().empty() ? 0 : static_cast<double>(trainer.steps().size()) / sum;
}

void add_highlights(Report& report, const LoraTrainer& trainer, const FinetuneEvidence& evidence) {
  std::vector<Highlight> figures;
  if (trainer.validations().size() >= 2) {
    double before = trainer.validations().front().loss, after = trainer.validations().back().loss;
    figures.push_back({"validation loss", human_number(after), "was " + human_number(before),
                       after < before ? Tone::good : Tone::bad});
  }
  figures.push_back({"optimizer steps", std::to_string(trainer.steps().size())});
  figures.push_back({"training speed", human_number(mean_rate(trainer)) + " tokens/s"});
  figures.push_back({"peak memory", human_bytes(static_cast<uint64_t>(evidence.memory_at_peak.total())),
                     "allocated by the library; mapped model files come on top"});
  report.highlights(figures);
}

void add_curves(Report& report, const LoraTrainer& trainer) {
  report.section("Learning");
  report.text(
      "The loss is the mean negative log likelihood of the answers' tokens: lower is better. The validation records "
      "are "
      "never trained on; where their curve turns upwards while the training loss goes on falling, the model starts to "
      "learn by heart.");
  report.chart({.title = "Loss",
                .y_label = "loss",
                .series = {step_series("training", trainer, &StepRecord::loss), validation_series(trainer)},
                .smooth = true,
                .wide = true});
  report.chart(
      {.title = "Learning rate", .y_label = "rate", .series = {step_series("rate", trainer, &StepRecord::lr)}});
  report.chart({.title = "Gradient norm before clipping",
                .y_label = "norm",
                .series = {step_series("norm", trainer, &StepRecord::grad_norm)}});
  report.chart({.title = "Speed",
                .note = "Tokens of the records (no padding is ever computed) per second of a whole step.",
                .y_label = "tokens/s",
                .series = {step_series("tokens/s", trainer, &StepRecord::tokens_per_second)}});
}

void add_answers(Report& report, const FinetuneEvidence& evidence) {
  if (evidence.questions.empty()) return;
  report.section("Answers before and after");
  report.text("Held-out instructions, answered with greedy decoding by the base model and by the tuned one.");
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < evidence.questions.size(); ++i)
    comparisons.push_back({question_of(evidence.questions[i]),
                           expected_answer(evidence.questions[i]),
                           {evidence.base_answers.at(i)},
                           {evidence.tuned_answers.at(i)}});
  report.comparison(comparisons);
}

void add_memory(Report& report, const FinetuneEvidence& evidence) {
  report.section("Where the memory went");
  Bar bar{"at peak", {}};
  for (int k = 0; k < kMemoryKinds; ++k) {
    auto kind = static_cast<MemoryKind>(k);
    if (evidence.memory_at_peak[kind] > 0)
      bar.parts.emplace_back(memory_kind_name(kind), static_cast<double>(evidence.memory_at_peak[kind]));
  }
  report.bars("Bytes by kind at the moment of the highest total", Unit::bytes, {bar});
  report.text(evidence.memory_text);
}

}  // namespace

void write_finetune_report(const std::filesystem::path& path, const FinetuneOptions& options, const std::string& model,
                           const LoraTrainer& trainer, const FinetuneEvidence& evidence) {
  Report report("LoRA fine-tuning of " + options.model.model.filename().string(),
                options.data.filename().string() + ", " + std::to_string(options.epochs) + " epoch(s)");
  add_highlights(report, trainer, evidence);
  for (const std::string& warning : trainer.warnings) report.callout(warning);
  add_curves(report, trainer);
  add_answers(report, evidence);
  add_memory(report, evidence);
  report.section("Setup");
  report.key_values({{"model", model},
                     {"data", options.data.string()},
                     {"adapter", fmt::format("rank {}, alpha {}, dropout {}, targets {}", options.rank, options.alpha,
                                             options.dropout, fmt::join(options.targets, ", "))},
                     {"batch", fmt::format("{} records x {} micro-batches", options.batch, options.accumulation)},
                     {"learning rate", fmt::format("{} peak, {}, warm-up {:.0f} %", options.lr, options.schedule,
                                                   100 * options.warmup)}});
  add_run_details(report, Json::parse_file(path.parent_path() / "run.json"));
  report.write(path);
}

}  // namespace strata::apps
