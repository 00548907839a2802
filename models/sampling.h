// Choosing the next token from logits: temperature, top-k, top-p, min-p, repetition penalty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strata::models {

struct SamplingOptions {
  double temperature = 0;  // 0: the most likely token (ties: lowest id), whatever the seed
  int64_t top_k = 0;       // <= 0: off
  double top_p = 1;        // smallest set of most likely tokens whose probabilities sum to at least this
  double min_p = 0;        // drop tokens below this share of the most likely one's probability
  double repetition_penalty =
      1;  // > 1: divides positive / multiplies negative logits of tokens seen (Keskar et al. 2019)
  uint64_t seed = 0;

  /// Throws UsageError naming the option: negative or non-finite temperature, top_p or min_p outside [0, 1], ...
  void validate() const;
};

/// The token for step `step` of a text: the draw depends on (seed, step) alone, not on the batch or the slot.
/// `seen` are the ids the repetition penalty looks at. At least one token always stays.
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, int64_t step,
                     std::span<const int32_t> seen = {});

/// The tokens that may be drawn and their probabilities, most likely first (what sample_token draws from).
std::vector<std::pair<int32_t, double>> candidate_tokens(std::span<const float> logits, const SamplingOptions& options,
                                                         std::span<const int32_t> seen = {});

}  // namespace strata::models
