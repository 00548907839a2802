// The training loop of `strata finetune lora`: steps, validation, checkpoints, and everything needed to go on after an
// interruption with the same bits.
#pragma once

#include <optional>

#include "apps/common/run_folder.h"
#include "apps/finetune/dataset.h"
#include "optim/optimizer.h"
#include "optim/training/checkpoint.h"
#include "optim/training/step.h"

namespace strata::apps {

struct StepRecord {
  int64_t step;
  double loss, lr, grad_norm, tokens_per_second;
};
struct ValidationRecord {
  int64_t step;
  double loss;
};

class LoraTrainer {
 public:
  LoraTrainer(const FinetuneOptions& options, ReadyModel& ready, FinetuneData& data, RunFolder& folder);

  int64_t total_steps() const { return total_steps_; }
  int64_t micro_batches() const { return sampler_.batches_per_epoch(); }
  /// Takes up a checkpoint; UsageError if flags contradict it.
  void restore(const optim::Checkpoint& checkpoint);
  /// Trains to the end, or until interrupted (then false, with a checkpoint saved).
  bool run();
  /// Mean loss over the counted tokens of the validation part; nullopt if there is none.
  std::optional<double> validate();

  const std::vector<StepRecord>& steps() const { return steps_; }
  const std::vector<ValidationRecord>& validations() const { return validations_; }
  /// Kept across a resume: what the run wants to remember (answers of the base model, ...).
  Json memory = Json::object();
  std::vector<std::string> warnings;

 private:
  void train_one_step();
  void record_validation();
  void save();
  Json settings() const;

  const FinetuneOptions& options_;
  ReadyModel& ready_;
  FinetuneData& data_;
  RunFolder& folder_;
  data::Sampler sampler_;
  optim::AdamW optimizer_;
  int64_t step_ = 0;
  int64_t total_steps_ = 0;
  int64_t eval_every_ = 1;
  std::vector<StepRecord> steps_;
  std::vector<ValidationRecord> validations_;
};

}  // namespace strata::apps
