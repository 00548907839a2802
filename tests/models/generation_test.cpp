// Two paths that must agree: cache and no cache, batch and single, chunks and one go, session and whole text.
#include "models/generation.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "tests/models/stories.h"

namespace strata::models {
namespace {

using namespace strata::test;  // NOLINT

std::vector<int32_t> text_ids(size_t n) {
  std::vector<int32_t> ids = ids_of(stories_golden().at("nll").at("ids"));
  ids.resize(n);
  return ids;
}

TEST(KvCache, PrefillAndSingleStepsEqualTheFullForward) {
  NoGrad off;
  auto loaded = load_stories();
  std::vector<int32_t> ids = text_ids(60);
  Tensor full = loaded.model->logits(TokenBatch::from({ids}));
  for (size_t chunk : {1u, 5u, 16u, 59u}) {
    KvCache cache(loaded.model->config(), 1, 64);
    for (size_t at = 0; at < ids.size(); at += chunk) {
      size_t n = std::min(chunk, ids.size() - at);
      std::vector<int32_t> part(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                ids.begin() + static_cast<std::ptrdiff_t>(at + n));
      Tensor logits = loaded.model->logits(TokenBatch::from({part}, {static_cast<int64_t>(at)}), &cache);
      Tensor expected = narrow(full, 0, static_cast<int64_t>(at), static_cast<int64_t>(n));
      EXPECT_LE(max_difference(logits, expected), 1e-5 * max_abs(expected)) << "chunk " << chunk << " at " << at;
    }
    EXPECT_EQ(cache.length(0), 60);
  }
}

TEST(KvCache, RefusesMoreThanItHolds) {
  NoGrad off;
  auto loaded = load_stories();
  KvCache cache(loaded.model->config(), 1, 8);
  EXPECT_THROW(loaded.model->logits(TokenBatch::from({text_ids(9)}), &cache), Error);
}

TEST(Generate, PromptsOfUnequalLengthTogetherEqualAlone) {
  auto loaded = load_stories();
  std::vector<std::vector<int32_t>> prompts = {text_ids(3), text_ids(9), text_ids(17)};
  GenerateOptions options{.max_new_tokens = 32};
  auto together = generate(*loaded.model, prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(generate(*loaded.model, {prompts[i]}, options)[0].ids, together[i].ids) << i;
  NoGrad off;
  Tensor all = loaded.model->logits(TokenBatch::from(prompts));
  int64_t at = 0;
  for (const auto& p : prompts) {
    auto n = static_cast<int64_t>(p.size());
    Tensor alone = loaded.model->logits(TokenBatch::from({p}));
    EXPECT_LE(max_difference(alone, narrow(all, 0, at, n)), 1e-5 * max_abs(alone));
    at += n;
  }
}

TEST(Generate, ARowThatStopsEarlyChangesNothingForTheOthers) {
  auto loaded = load_stories();
  std::vector<int32_t> a = text_ids(5), b = text_ids(20);
  auto alone = generate(*loaded.model, {b}, {.max_new_tokens = 24});
  auto free_run = generate(*loaded.model, {a}, {.max_new_tokens = 24});
  int64_t stop = free_run[0].ids[4];
  auto both = generate(*loaded.model, {a, b}, {.max_new_tokens = 24, .stop_ids = {stop}});
  EXPECT_EQ(both[0].finish_reason, "stop");
  EXPECT_LE(both[0].ids.size(), 4u);
  std::vector<int32_t> expected = alone[0].ids;
  if (auto cut = std::find(expected.begin(), expected.end(), stop); cut != expected.end())
    expected.erase(cut, expected.end());
  EXPECT_EQ(both[1].ids, expected);
}

TEST(Generate, StopsAtAnyOfSeveralEndTokens) {
  auto loaded = load_stories();
  std::vector<int32_t> prompt = text_ids(5);
  auto run = generate(*loaded.model, {prompt}, {.max_new_tokens = 16})[0].ids;
  auto stopped = generate(*loaded.model, {prompt}, {.max_new_tokens = 16, .stop_ids = {500, run[3], run[9]}});
  size_t first = static_cast<size_t>(
      std::find_if(run.begin(), run.end(), [&](int32_t id) { return id == run[3] || id == run[9]; }) - run.begin());
  EXPECT_EQ(stopped[0].ids.size(), first);
  EXPECT_EQ(stopped[0].finish_reason, "stop");
  auto longer = generate(*loaded.model, {prompt}, {.max_new_tokens = 16, .min_new_tokens = 12, .stop_ids = {run[3]}});
  EXPECT_GE(longer[0].ids.size(), 12u);
}

TEST(Generate, PrefillInChunksGivesTheSameText) {
  auto loaded = load_stories();
  std::vector<int32_t> prompt = text_ids(40);
  auto whole = generate(*loaded.model, {prompt}, {.max_new_tokens = 24});
  for (int64_t chunk : {1, 7, 39})
    EXPECT_EQ(generate(*loaded.model, {prompt}, {.max_new_tokens = 24, .prefill_chunk = chunk})[0].ids, whole[0].ids);
}

TEST(Generate, EndsAtTheContextAndRefusesLongerPrompts) {
  auto loaded = load_stories();
  std::vector<int32_t> ids = text_ids(170);
  std::vector<int32_t> long_prompt;
  while (long_prompt.size() + ids.size() < 512) long_prompt.insert(long_prompt.end(), ids.begin(), ids.end());
  auto out = generate(*loaded.model, {long_prompt}, {.max_new_tokens = 400});
  EXPECT_EQ(out[0].finish_reason, "length");
  EXPECT_EQ(out[0].ids.size() + long_prompt.size(), 512u);
  long_prompt.resize(512, 5);
  EXPECT_THROW(generate(*loaded.model, {long_prompt}, {}), Error);
  EXPECT_THROW(generate(*loaded.model, {{}}, {}), Error);
}

TEST(Generate, SampledTextRepeatsWithItsSeed) {
  auto loaded = load_stories();
  GenerateOptions options{.sampling = {.temperature = 1, .seed = 11}, .max_new_tokens = 40};
  auto first = generate(*loaded.model, {text_ids(5)}, options)[0].ids;
  EXPECT_EQ(generate(*loaded.model, {text_ids(5)}, options)[0].ids, first);
  options.sampling.seed = 12;
  EXPECT_NE(generate(*loaded.model, {text_ids(5)}, options)[0].ids, first);
}

TEST(Session, TwoTurnsOnOneCacheEqualTheWholeText) {
  auto loaded = load_stories();
  Session session(*loaded.model, 256);
  GenerateOptions options{.max_new_tokens = 20};
  std::vector<int32_t> text = text_ids(10);
  std::vector<int32_t> reply = session.generate(text, options).ids;
  EXPECT_EQ(reply, generate(*loaded.model, {text}, options)[0].ids);
  text.insert(text.end(), reply.begin(), reply.end());
  std::vector<int32_t> next = text_ids(30);
  text.insert(text.end(), next.begin() + 12, next.end());
  EXPECT_EQ(session.generate(text, options).ids, generate(*loaded.model, {text}, options)[0].ids);
  text.resize(15);  // the user takes the last turn back
  EXPECT_EQ(session.generate(text, options).ids, generate(*loaded.model, {text}, options)[0].ids);
}

}  // namespace
}  // namespace strata::models
