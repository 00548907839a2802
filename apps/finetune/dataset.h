// From the data file to what the trainer needs, and what is printed before the first step.
#pragma once

#include "apps/finetune/options.h"
#include "data/instruct/encode.h"

namespace strata::apps {

struct FinetuneData {
  data::DataSet set;
  data::Split split;
  data::Leakage leakage;
  data::EncodedSet train, validation;
  std::vector<data::Conversation> held_out;  // the test part
  std::string digest;                        // of the records: a resumed run must see the same
};

/// Reads, splits and encodes. Errors name file, record and field; a set in which nothing can be trained is refused.
FinetuneData read_finetune_data(const FinetuneOptions& options, const data::Template& form, int64_t context);

/// What the run will do, in lines: data, lengths, counted tokens, one decoded record with its mask, trainable
/// parameters by kind, tokens per optimizer step, steps.
std::string describe_run(const FinetuneOptions& options, ReadyModel& ready, const FinetuneData& data,
                         const std::vector<models::TargetCount>& targets, int64_t micro_batches, int64_t total_steps);

}  // namespace strata::apps
