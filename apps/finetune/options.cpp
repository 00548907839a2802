#include "apps/finetune/options.h"

#include <cmath>

namespace strata::apps {

namespace {

void add_training_flags(Flags& flags, FinetuneOptions& o) {
  flags.section("training");
  flags.add("--epochs", o.epochs, "passes over the training records").at_least(1);
  flags.add("--max-steps", o.max_steps, "stop after this many optimizer steps").at_least(0).default_text("all epochs");
  flags.add("--batch", o.batch, "records of a micro-batch").at_least(1);
  flags.add("--accumulation", o.accumulation, "micro-batches of an optimizer step").at_least(1);
  flags.add("--lr", o.lr, "peak learning rate").above(0);
  flags.add("--schedule", o.schedule, "shape of the learning rate after the warm-up")
      .one_of({"cosine", "linear", "constant"});
  flags.add("--warmup", o.warmup, "share of the steps in which the rate rises").at_least(0).below(1);
  flags.add("--weight-decay", o.weight_decay, "AdamW's decoupled weight decay").at_least(0);
  flags.add("--clip", o.clip, "greatest gradient norm; 0: no clipping").at_least(0);
  flags.add("--shuffle", o.shuffle, "a new seeded order every epoch");
  flags.add("--group-by-length", o.group_by_length, "put records of similar length into one batch");
  flags.add("--checkpointing", o.checkpointing, "keep each layer's input only and compute the rest again: less memory");
}

void add_data_flags(Flags& flags, FinetuneOptions& o) {
  flags.section("data");
  flags
      .add("-d,--data", o.data,
           "instruction records: Alpaca, prompt/completion, messages or ShareGPT, as JSON or JSONL")
      .required()
      .existing();
  flags.add("--max-length", o.max_length, "longest record in tokens (never more than the model's context)").at_least(2);
  flags.add("--too-long", o.too_long, "what happens to longer records").one_of({"error", "skip", "truncate"});
  flags.add("--skip-bad-records", o.skip_bad_records, "leave unusable records out instead of stopping");
  flags.add("--train-share", o.split.train, "share of the records that train").above(0).at_most(1);
  flags.add("--validation-share", o.split.validation, "share that validates").at_least(0).below(1);
  flags.add("--test-share", o.split.test, "share held out for the before/after answers").at_least(0).below(1);
}

}  // namespace

void add_finetune_flags(Flags& flags, FinetuneOptions& o) {
  add_model_flags(flags, o.model, false);
  add_data_flags(flags, o);
  flags.section("LoRA");
  flags.add("-r,--rank", o.rank, "rank of the low-rank matrices").at_least(1);
  flags.add("--alpha", o.alpha, "scaling: alpha / rank").above(0);
  flags.add("--dropout", o.dropout, "dropout before the low-rank matrices").at_least(0).below(1);
  flags.add("--rslora", o.rslora, "rank-stabilised scaling: alpha / sqrt(rank)");
  flags.add("--targets", o.targets, "modules that get an adapter, or all-linear").comma_separated();
  flags.add("--init-adapter", o.init_adapter, "go on training this adapter (its rank, alpha and targets are taken)");
  add_training_flags(flags, o);
  flags.section("evaluation and output");
  flags.add("--eval-every", o.eval_every, "steps between validations").at_least(0).default_text("four an epoch");
  flags.add("--save-every", o.save_every, "steps between checkpoints").at_least(1);
  flags.add("--answers", o.answers, "held-out instructions answered before and after").at_least(0);
  flags.add("--answer-tokens", o.answer_tokens, "longest answer").at_least(1);
  flags.add("--out", o.out, "run folder").default_text("runs/<date>-finetune-lora-<id>");
  flags.add("--resume", o.resume, "go on with the run in --out from its newest checkpoint");
  add_common_flags(flags, o.common);
  flags.check_after([&o] {
    check<UsageError>(!o.resume || !o.out.empty(), "--resume: needs --out RUN_FOLDER (or use: strata finetune resume)");
    double sum = o.split.train + o.split.validation + o.split.test;
    check<UsageError>(std::abs(sum - 1) < 1e-9,
                      "--train-share, --validation-share, --test-share: must add up to 1, got {}", sum);
  });
}

models::AdapterConfig FinetuneOptions::adapter_config(const std::string& base_name) const {
  models::AdapterConfig config;
  config.base_model = base_name;
  config.lora = {.r = rank, .alpha = alpha, .dropout = dropout, .use_rslora = rslora};
  if (targets.size() == 1 && targets[0] == "all-linear")
    config.target_pattern = "all-linear";
  else
    config.target_modules = targets;
  return config;
}

}  // namespace strata::apps
