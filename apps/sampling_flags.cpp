#include "apps/sampling_flags.h"

namespace strata::apps {

void add_sampling_flags(Flags& flags, SamplingFlags& o) {
  flags.section("sampling");
  flags.add("-n,--max-new-tokens", o.max_new_tokens, "longest continuation").at_least(1);
  flags.add("-t,--temperature", o.sampling.temperature, "0: always the most likely token").at_least(0);
  flags.add("--top-k", o.sampling.top_k, "draw among the k most likely tokens; 0: all").at_least(0);
  flags.add("--top-p", o.sampling.top_p, "draw among the most likely tokens that make up this probability")
      .at_least(0)
      .at_most(1);
  flags.add("--min-p", o.sampling.min_p, "drop tokens below this share of the best one's probability")
      .at_least(0)
      .at_most(1);
  flags.add("--repetition-penalty", o.sampling.repetition_penalty, "above 1: tokens seen before become less likely")
      .above(0);
  flags.add("--ignore-eos", o.ignore_eos, "do not stop at end tokens");
}

models::GenerateOptions generate_options(const SamplingFlags& flags, uint64_t seed,
                                         const std::vector<int64_t>& stop_ids) {
  models::GenerateOptions options;
  options.sampling = flags.sampling;
  options.sampling.seed = seed;
  options.max_new_tokens = flags.max_new_tokens;
  if (!flags.ignore_eos) options.stop_ids = stop_ids;
  return options;
}

}  // namespace strata::apps
