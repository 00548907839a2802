#include "apps/finetune/answers.h"

#include "models/generation.h"

namespace strata::apps {

namespace {
constexpr size_t kAtOnce = 8;
}

std::vector<std::string> answer_prompts(ReadyModel& ready, const std::vector<data::Conversation>& prompts,
                                        int64_t max_tokens, const models::SamplingOptions& sampling,
                                        const std::function<void(int64_t)>& progress) {
  models::GenerateOptions options;
  options.sampling = sampling;
  options.max_new_tokens = max_tokens;
  options.stop_ids = ready.stop_ids;
  std::vector<std::string> answers;
  for (size_t at = 0; at < prompts.size(); at += kAtOnce) {
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = at; i < std::min(prompts.size(), at + kAtOnce); ++i)
      ids.push_back(ready.form->prompt_ids(prompts[i]));
    for (const models::Generation& g : models::generate(ready.model(), ids, options))
      answers.push_back(ready.tokenizer().decode(g.ids, true));
    if (progress) progress(static_cast<int64_t>(answers.size()));
  }
  return answers;
}

std::string question_of(const data::Conversation& record) {
  for (auto turn = record.turns.rbegin(); turn != record.turns.rend(); ++turn)
    if (turn->role == data::Role::user) return turn->text();
  return "";
}

std::string expected_answer(const data::Conversation& record) {
  bool answered = !record.turns.empty() && record.turns.back().role == data::Role::assistant;
  return answered ? record.turns.back().content : "";
}

}  // namespace strata::apps
