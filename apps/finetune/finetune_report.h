// report.html of a fine-tuning run.
#pragma once

#include "apps/finetune/trainer.h"

namespace strata::apps {

/// What the run can show besides its curves.
struct FinetuneEvidence {
  std::vector<data::Conversation> questions;
  std::vector<std::string> base_answers, tuned_answers;
  MemoryUse memory_at_peak;
  std::string memory_text;
};

void write_finetune_report(const std::filesystem::path& path, const FinetuneOptions& options, const std::string& model,
                           const LoraTrainer& trainer, const FinetuneEvidence& evidence);

}  // namespace strata::apps
