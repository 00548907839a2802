// SmolLM2-135M-Instruct against PyTorch on the same dequantised weights (tests/golden/smollm2_reference.py).
#include "tests/models/smollm2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "models/generation.h"
#include "tests/models/stories.h"

namespace strata {
namespace {

using namespace strata::test;  // NOLINT

class SmolLM2 : public testing::Test {
 protected:
  void SetUp() override {
    STRATA_NEEDS_SMOLLM2();
    golden = Json::parse_file(std::filesystem::path(STRATA_SOURCE_DIR) / "tests/golden/smollm2_reference.json");
    loaded = models::load_model(smollm2_path());
  }
  Json golden;
  models::LoadedModel loaded;
};

TEST_F(SmolLM2, TokenizerFromGguf) {
  for (const Json& c : golden.at("tokenizer").at("cases").items()) {
    std::string text = c.get<std::string>("text");
    auto ids = loaded.tokenizer->encode(text, {.parse_special = c.get<bool>("parse_special")});
    EXPECT_EQ(ids, ids_of(c.at("ids"))) << text;
    EXPECT_EQ(loaded.tokenizer->decode(ids), c.get<std::string>("decoded")) << text;
  }
}

TEST_F(SmolLM2, TopTenLogits) {
  const Json& l = golden.at("logits");
  NoGrad off;
  Tensor logits = loaded.model->logits(models::TokenBatch::from({ids_of(l.at("ids"))}));
  for (const Json& p : l.at("positions").items()) {
    std::vector<float> row = to_vector<float>(select(logits, 0, p.get<int64_t>("position")));
    for (const Json& pair : p.at("top10").items())
      EXPECT_NEAR(row[static_cast<size_t>(pair.items()[0].as_int())], pair.items()[1].as_double(), 1e-3);
  }
}

TEST_F(SmolLM2, GreedyContinuationsOfTenPrompts) {
  std::vector<std::vector<int32_t>> prompts, expected;
  for (const Json& p : golden.at("greedy").at("prompts").items()) {
    prompts.push_back(ids_of(p.at("ids")));
    expected.push_back(ids_of(p.at("new_ids")));
    EXPECT_EQ(loaded.tokenizer->encode(p.get<std::string>("text"), {.parse_special = true}), prompts.back());
  }
  auto together = models::generate(*loaded.model, prompts, {.max_new_tokens = 32});
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(together[i].ids, expected[i]) << i;
  EXPECT_EQ(models::generate(*loaded.model, {prompts[0]}, {.max_new_tokens = 32})[0].ids, expected[0]);
}

TEST_F(SmolLM2, PackedWeightsEqualDequantisedOnes) {
  models::LoadedModel dense = models::load_model(smollm2_path(), {.dequantize = true});
  auto batch = models::TokenBatch::from({ids_of(golden.at("logits").at("ids"))});
  NoGrad off;
  Tensor a = loaded.model->logits(batch), b = dense.model->logits(batch);
  EXPECT_LE(max_difference(a, b), 1e-5 * max_abs(b));
}

std::vector<int32_t> wikitext_ids(const models::LoadedModel& loaded, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return loaded.tokenizer->encode(text.str());
}

double window_nll(const models::LoadedModel& loaded, const std::vector<int32_t>& ids, size_t window) {
  size_t begin = window * 512, end = std::min(ids.size(), begin + 512);
  std::vector<int32_t> part(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                            ids.begin() + static_cast<std::ptrdiff_t>(end));
  NoGrad off;
  return loaded.model->loss_sum(models::TokenBatch::from({part}), next_token_targets(part)).item();
}

TEST_F(SmolLM2, PerplexityOfTheFirstWindows) {
  auto path = shared_data("text/wikitext2-test.txt");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "set STRATA_SHARED_DATA to a folder with text/wikitext2-test.txt";
  std::vector<int32_t> ids = wikitext_ids(loaded, path);
  const Json& p = golden.at("perplexity");
  EXPECT_EQ(static_cast<int64_t>(ids.size()), p.get<int64_t>("tokens"));
  const auto& windows = p.at("first_8_windows").at("nll").items();
  for (size_t w = 0; w < windows.size(); ++w) {
    double expected = windows[w].as_double();
    EXPECT_NEAR(window_nll(loaded, ids, w), expected, 1e-5 * expected) << w;
  }
}

}  // namespace
}  // namespace strata
