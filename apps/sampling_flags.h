// Flags of commands that generate text.
#pragma once

#include "apps/common/flags.h"
#include "models/generation.h"

namespace strata::apps {

struct SamplingFlags {
  models::SamplingOptions sampling;
  int64_t max_new_tokens = 256;
  bool ignore_eos = false;
};

void add_sampling_flags(Flags& flags, SamplingFlags& options);
models::GenerateOptions generate_options(const SamplingFlags& flags, uint64_t seed,
                                         const std::vector<int64_t>& stop_ids);

}  // namespace strata::apps
