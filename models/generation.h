// Text generation with a KV cache: one or several prompts at once, without padding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/decoder.h"
#include "models/sampling.h"

namespace strata::models {

struct GenerateOptions {
  SamplingOptions sampling = {};
  int64_t max_new_tokens = 128;
  int64_t min_new_tokens = 0;          // stop ids are not drawn before
  std::vector<int64_t> stop_ids = {};  // end a text; the stop token itself is not part of the result
  int64_t prefill_chunk = 512;         // prompt tokens run through the model at once
};

struct Generation {
  std::vector<int32_t> ids;   // new tokens, without the stop token
  std::string finish_reason;  // "stop", "length" (max_new_tokens or the context is full), "cancelled"
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0;  // of the whole batch
  double decode_seconds = 0;
};

/// Called for every new token of sequence `index`; false cancels that sequence.
using OnToken = std::function<bool(int64_t index, int32_t id)>;

/// Continues each prompt (at least one token, shorter than the context). Sequence i's draws depend on (seed + i, step).
std::vector<Generation> generate(const Decoder& model, const std::vector<std::vector<int32_t>>& prompts,
                                 const GenerateOptions& options, const OnToken& on_token = {});

/// One growing text: keeps the cache between turns of a chat, so that only new tokens run through the model.
class Session {
 public:
  Session(const Decoder& model, int64_t capacity);
  /// Continues `ids` (the whole text so far); what the cache already holds of it is not computed again.
  Generation generate(const std::vector<int32_t>& ids, const GenerateOptions& options, const OnToken& on_token = {});
  /// Forget the cache (after switching an adapter).
  void reset();

 private:
  const Decoder& model_;
  KvCache cache_;
  std::vector<int32_t> cached_ids_;
};

}  // namespace strata::models
