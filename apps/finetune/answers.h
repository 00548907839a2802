// Answers to held-out instructions, to be put side by side: expected, base model, tuned model.
#pragma once

#include "apps/model_flags.h"
#include "models/sampling.h"

namespace strata::apps {

/// Greedy answers (or sampled, if `sampling` says so) of at most max_tokens each; several prompts run at once.
std::vector<std::string> answer_prompts(ReadyModel& ready, const std::vector<data::Conversation>& prompts,
                                        int64_t max_tokens, const models::SamplingOptions& sampling = {},
                                        const std::function<void(int64_t done)>& progress = {});

/// The question of a record (its last user turn) and the answer it expects.
std::string question_of(const data::Conversation& record);
std::string expected_answer(const data::Conversation& record);

}  // namespace strata::apps
