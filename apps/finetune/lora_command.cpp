// strata finetune lora: base model + instruction records -> LoRA adapter, with evidence that it helped.
#include "apps/commands.h"
#include "apps/common/human.h"
#include "apps/common/progress.h"
#include "apps/common/run_folder.h"
#include "apps/finetune/answers.h"
#include "apps/finetune/finetune_report.h"
#include "apps/finetune/trainer.h"
#include "apps/print.h"

namespace strata::apps {

namespace {

Json adapter_notes(const ReadyModel& ready) {
  Json stops = Json::array();
  for (int64_t id : ready.stop_ids) stops.push(id);
  return Json::object()
      .set("format", "strata adapter notes 1")
      .set("base_model", ready.loaded.name)
      .set("base_digest", ready.loaded.weights_digest)
      .set("template", ready.form->name())
      .set("template_hash", ready.form->hash())
      .set("stop_ids", stops);
}

std::vector<data::Conversation> chosen_questions(const FinetuneOptions& options, const FinetuneData& data) {
  auto n = std::min(data.held_out.size(), static_cast<size_t>(options.answers));
  return {data.held_out.begin(), data.held_out.begin() + static_cast<std::ptrdiff_t>(n)};
}

std::vector<std::string> answer_with_progress(const FinetuneOptions& options, ReadyModel& ready,
                                              const std::vector<data::Conversation>& questions, const char* title) {
  if (questions.empty()) return {};
  Progress progress({.title = title, .unit = "answer", .total = static_cast<int64_t>(questions.size())});
  auto answers =
      answer_prompts(ready, questions, options.answer_tokens, {}, [&](int64_t done) { progress.update(done); });
  progress.finish();
  return answers;
}

std::vector<std::string> base_answers(const FinetuneOptions& options, ReadyModel& ready, LoraTrainer& trainer,
                                      const std::vector<data::Conversation>& questions) {
  std::vector<std::string> answers;
  if (const Json* kept = trainer.memory.find("base_answers")) {  // a resumed run: before training, not after half of it
    for (const Json& a : kept->items()) answers.push_back(a.as_string());
    return answers;
  }
  models::enable_lora(ready.model(), false);
  answers = answer_with_progress(options, ready, questions, "answers before");
  models::enable_lora(ready.model(), true);
  Json kept = Json::array();
  for (const std::string& a : answers) kept.push(valid_utf8(a));
  trainer.memory.set("base_answers", kept);
  return answers;
}

std::vector<models::TargetCount> add_adapter(const FinetuneOptions& options, ReadyModel& ready,
                                             models::AdapterConfig& config) {
  if (options.init_adapter.empty()) {
    config = options.adapter_config(ready.loaded.name);
    return models::add_lora(ready.model(), config, options.common.seed);
  }
  models::LoadedAdapter loaded = models::load_adapter(ready.model(), options.init_adapter);
  config = loaded.config;
  return loaded.targets;
}

std::string memory_lines(ReadyModel& ready) {
  MemoryUse peak = ledger::at_peak();
  int64_t all = ready.model().parameter_count() + ready.model().quantized_values();
  // Full fine-tuning keeps weights, gradients and AdamW's two moments in f32, and at least these activations.
  int64_t full = 16 * all + peak[MemoryKind::activation];
  return fmt::format(
      "memory     {} at peak ({} of activations) with the base frozen; full fine-tuning would need at least {} "
      "(16 bytes for each of {} parameters and the same activations)",
      human_bytes(static_cast<uint64_t>(peak.total())),
      human_bytes(static_cast<uint64_t>(peak[MemoryKind::activation])), human_bytes(static_cast<uint64_t>(full)),
      human_count(static_cast<double>(all)));
}

void print_comparison(const FinetuneEvidence& evidence) {
  for (size_t i = 0; i < evidence.questions.size() && i < 3; ++i) {
    auto show = [](const char* title, const std::string& text) {
      std::string line = printable(text);
      print_line(fmt::format("  {:<9} {}", title, fit_columns(line, 100)));
    };
    print_line("");
    show("question", question_of(evidence.questions[i]));
    show("expected", expected_answer(evidence.questions[i]));
    show("base", evidence.base_answers[i]);
    show("tuned", evidence.tuned_answers[i]);
  }
}

int finetune_lora(const FinetuneOptions& options, const Invocation& invocation) {
  check<UsageError>(options.common.resolved_device() == "cpu", "--device {}: fine-tuning runs on the cpu in this build",
                    options.common.resolved_device());
  std::optional<optim::Checkpoint> checkpoint;
  if (options.resume) {
    optim::remove_temporary_checkpoints(options.out / "checkpoints");
    checkpoint = optim::load_newest_checkpoint(options.out / "checkpoints");
    check<UsageError>(checkpoint.has_value(), "--resume: {} holds no checkpoint; start the run without --resume",
                      options.out.string());
    for (const std::string& skipped : checkpoint->skipped) print_line("skipped a damaged checkpoint: " + skipped);
  }
  manual_seed(options.common.seed);
  ReadyModel ready = load_ready_model(options.model);
  FinetuneData data = read_finetune_data(options, *ready.form, ready.model().config().max_positions);
  models::AdapterConfig config;
  std::vector<models::TargetCount> targets = add_adapter(options, ready, config);
  ready.model().set_checkpointing(options.checkpointing);

  RunFolderOptions folder_options{.out = options.out, .seed = options.common.seed};
  if (checkpoint) folder_options.resume_after = checkpoint->step;
  RunFolder folder(invocation, folder_options);
  LoraTrainer trainer(options, ready, data, folder);
  for (const std::string& note : ready.notes) print_line("note: " + note);
  print_line(describe_run(options, ready, data, targets, trainer.micro_batches(), trainer.total_steps()));
  if (checkpoint) {
    trainer.restore(*checkpoint);
    print_line(fmt::format("resuming after step {} of {}", checkpoint->step, trainer.total_steps()));
  }

  FinetuneEvidence evidence;
  evidence.questions = chosen_questions(options, data);
  evidence.base_answers = base_answers(options, ready, trainer, evidence.questions);
  ledger::reset_peak();
  if (!trainer.run()) {
    folder.finish(RunStatus::interrupted);
    print_line(fmt::format("interrupted; go on with: strata finetune resume {}", folder.path().string()));
    return kExitInterrupted;
  }
  evidence.memory_at_peak = ledger::at_peak();
  evidence.memory_text = memory_lines(ready);
  ready.model().eval();
  evidence.tuned_answers = answer_with_progress(options, ready, evidence.questions, "answers after");

  std::filesystem::path adapter = folder.path() / "adapter";
  models::save_adapter(ready.model(), config, adapter, adapter_notes(ready));
  write_finetune_report(folder.report(), options, describe_model(ready), trainer, evidence);
  folder.set("adapter", adapter.string());
  if (!trainer.validations().empty()) folder.set("validation_loss", trainer.validations().back().loss);
  folder.finish();

  print_comparison(evidence);
  print_line("");
  print_line(evidence.memory_text);
  if (trainer.validations().size() >= 2)
    print_line(fmt::format("validation loss {} before, {} after", human_number(trainer.validations().front().loss),
                           human_number(trainer.validations().back().loss)));
  print_line("adapter    " + adapter.string());
  print_line("report     " + std::filesystem::absolute(folder.report()).string());
  print_line(
      fmt::format("try it     strata chat --model {} --adapter {}", options.model.model.string(), adapter.string()));
  return kExitFine;
}

struct ResumeOptions {
  std::filesystem::path folder;
};

// The run's own command line again, with --out and --resume put behind it.
int finetune_resume(const ResumeOptions& options, const Invocation&) {
  Json run = Json::parse_file(options.folder / "run.json");
  std::vector<std::string> arguments;
  const auto& line = run.at("command_line").items();
  check<FormatError>(!line.empty(), "{}: field 'command_line' is empty", (options.folder / "run.json").string());
  if (line[0].as_string() != "strata") arguments.push_back("finetune");  // a stage program's commands are one level up
  for (size_t i = 1; i < line.size(); ++i) {
    const std::string& a = line[i].as_string();
    if (a == "--resume" || a.starts_with("--out=")) continue;
    if (a == "--out") {
      ++i;
      continue;
    }
    arguments.push_back(a);
  }
  arguments.insert(arguments.end(), {"--out", options.folder.string(), "--resume"});
  return run_program(strata_program(), arguments);
}

}  // namespace

Command finetune_command() {
  Command lora = make_command<FinetuneOptions>(
      {.name = "lora",
       .description = "fine-tune a language model with LoRA adapters on instruction records",
       .examples = "{command} --model SmolLM2-135M-Instruct.Q4_1.gguf --data instruction-data.json\n"
                   "{command} --model ./Llama-folder --data chats.jsonl --rank 8 --alpha 16 --epochs 3 --lr 1e-4\n"
                   "{command} --model m.gguf --data d.json --batch 2 --accumulation 4 --checkpointing",
       .details =
           "The base model stays frozen (block-quantised weights stay packed); small matrices beside its linear "
           "layers are trained. Leaves a run folder with adapter/ (PEFT's format), metrics.jsonl, checkpoints and "
           "report.html with answers before and after. Ctrl-C saves and ends; `strata finetune resume FOLDER` goes "
           "on."},
      [](Flags& flags, FinetuneOptions& options) { add_finetune_flags(flags, options); }, finetune_lora);
  Command resume = make_command<ResumeOptions>(
      {.name = "resume",
       .description = "go on with an interrupted fine-tuning run, bit for bit",
       .examples = "{command} runs/2026-01-31-142530-finetune-lora-3f9a"},
      [](Flags& flags, ResumeOptions& options) {
        flags.positional("FOLDER", options.folder, "the run folder").required().existing();
      },
      finetune_resume);
  return make_group({.name = "finetune",
                     .description = "fine-tune a language model",
                     .examples = "{command} lora --model m.gguf --data records.json"},
                    {lora, resume});
}

}  // namespace strata::apps
