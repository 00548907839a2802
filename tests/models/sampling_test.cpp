#include "models/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/error.h"

namespace strata::models {
namespace {

using testing::ElementsAre;

std::vector<int32_t> allowed(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<int32_t> ids;
  for (const auto& [id, p] : candidate_tokens(logits, options)) ids.push_back(id);
  return ids;
}

TEST(Sampling, TemperatureZeroIsTheMostLikelyTokenWhateverTheSeed) {
  std::vector<float> logits = {1, 3, 2};
  for (uint64_t seed : {0u, 1u, 99u}) EXPECT_EQ(sample_token(logits, {.temperature = 0, .seed = seed}, 5), 1);
  EXPECT_EQ(sample_token(std::vector<float>{2, 7, 7}, {}, 0), 1);  // ties: lowest id
  EXPECT_EQ(sample_token(logits, {.temperature = 1e-6, .seed = 3}, 0), 1);
  float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sample_token(std::vector<float>{-inf, 0, -inf}, {.temperature = 1e-30, .seed = 3}, 0), 1);
}

TEST(Sampling, TopPEdges) {
  std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_p = 0}), ElementsAre(0));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_p = 0.5}), ElementsAre(0));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_p = 0.51}), ElementsAre(0, 1));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_p = 1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .min_p = 0.5}), ElementsAre(0, 1));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .min_p = 1}), ElementsAre(0));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_k = 0}), ElementsAre(0, 1, 2));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_k = -1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_k = 99}), ElementsAre(0, 1, 2));
  EXPECT_THAT(allowed(logits, {.temperature = 1, .top_k = 2}), ElementsAre(0, 1));
}

TEST(Sampling, BadOptionsAreNamed) {
  double nan = std::nan("");
  for (SamplingOptions o :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = nan}, SamplingOptions{.top_p = 1.01},
        SamplingOptions{.top_p = -0.1}, SamplingOptions{.min_p = 2}, SamplingOptions{.repetition_penalty = 0}})
    EXPECT_THROW(o.validate(), UsageError);
  EXPECT_NO_THROW(SamplingOptions{}.validate());
  EXPECT_THROW(sample_token(std::vector<float>{1, std::nanf("")}, {}, 0), Error);
}

TEST(Sampling, FrequenciesFollowTheProbabilities) {
  std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  std::vector<int> count(3);
  constexpr int kDraws = 20000;
  for (int step = 0; step < kDraws; ++step)
    ++count[static_cast<size_t>(sample_token(logits, {.temperature = 1, .seed = 17}, step))];
  double expected[] = {0.5, 0.3, 0.2};
  for (size_t i = 0; i < 3; ++i) {
    double sigma = std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
    EXPECT_NEAR(count[i] / double{kDraws}, expected[i], 5 * sigma);
  }
}

TEST(Sampling, DrawDependsOnSeedAndStepAlone) {
  std::vector<float> logits = {0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<int32_t> first, second;
  for (int step = 0; step < 32; ++step) first.push_back(sample_token(logits, {.temperature = 1, .seed = 5}, step));
  for (int step = 31; step >= 0; --step)
    second.insert(second.begin(), sample_token(logits, {.temperature = 1, .seed = 5}, step));
  EXPECT_EQ(first, second);
}

TEST(Sampling, RepetitionPenalty) {
  std::vector<float> logits = {2, -1, 1.5};
  std::vector<int32_t> seen = {0, 1, 0, 7};
  SamplingOptions o{.repetition_penalty = 2};
  EXPECT_EQ(sample_token(logits, o, 0, seen), 2);  // 2 / 2 = 1 < 1.5
}

}  // namespace
}  // namespace strata::models
