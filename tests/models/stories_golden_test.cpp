// stories260K against float64 references: logits, gradients, an AdamW trace, greedy text, an adapter, bf16 shards.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "models/adapters.h"
#include "models/generation.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "tests/models/stories.h"

namespace strata {
namespace {

using namespace strata::test;  // NOLINT

double mean_nll(models::Decoder& model, const std::vector<int32_t>& ids) {
  NoGrad off;
  return model.loss_sum(models::TokenBatch::from({ids}), next_token_targets(ids)).item() /
         static_cast<double>(ids.size() - 1);
}

TEST(StoriesGolden, Logits) {
  auto loaded = load_stories();
  SafetensorsFile golden = SafetensorsFile::open(stories_folder() / "golden_logits.safetensors");
  std::vector<int32_t> ids = to_vector<int32_t>(golden.tensor("ids"));
  NoGrad off;
  Tensor logits = loaded.model->logits(models::TokenBatch::from({ids}));
  EXPECT_LE(max_difference(logits, golden.tensor("logits")), 1e-4);
}

TEST(StoriesGolden, NegativeLogLikelihoods) {
  auto loaded = load_stories();
  const Json& nll = stories_golden().at("nll");
  std::vector<int32_t> ids = ids_of(nll.at("ids"));
  EXPECT_NEAR(mean_nll(*loaded.model, ids), nll.get<double>("mean_nll"), 1e-5);
  std::vector<double> each =
      to_vector<double>(loaded.model->token_losses(models::TokenBatch::from({ids}), next_token_targets(ids)));
  const auto& expected = nll.at("per_token").items();
  ASSERT_EQ(expected.size() + 1, each.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(each[i], expected[i].as_double(), 2e-4) << i;
}

TEST(StoriesGolden, EveryParameterGradient) {
  auto loaded = load_stories();
  models::make_trainable(*loaded.model);
  std::vector<int32_t> ids = ids_of(stories_golden().at("nll").at("ids"));
  Tensor loss = loaded.model->loss_sum(models::TokenBatch::from({ids}), next_token_targets(ids));
  backward(loss * (1.0 / static_cast<double>(ids.size() - 1)));
  SafetensorsFile golden = SafetensorsFile::open(stories_folder() / "golden_grads.safetensors");
  auto parameters = loaded.model->named_parameters();
  EXPECT_EQ(parameters.size(), golden.tensors().size());
  for (const auto& p : parameters) {
    ASSERT_TRUE(grad(p.tensor)) << p.name;
    Tensor expected = golden.tensor(p.name);
    EXPECT_LE(max_difference(grad(p.tensor), expected), 1e-4 * max_abs(expected)) << p.name;
  }
}

TEST(StoriesGolden, CheckpointedGradientsAreTheSameBits) {
  std::vector<int32_t> ids = ids_of(stories_golden().at("nll").at("ids"));
  auto run = [&](bool checkpointing) {
    auto loaded = load_stories();
    models::make_trainable(*loaded.model);
    loaded.model->set_checkpointing(checkpointing);
    backward(loaded.model->loss_sum(models::TokenBatch::from({ids}), next_token_targets(ids)));
    std::vector<Tensor> gradients;
    for (const auto& p : loaded.model->named_parameters()) gradients.push_back(grad(p.tensor));
    return gradients;
  };
  std::vector<Tensor> stored = run(false), again = run(true);
  for (size_t i = 0; i < stored.size(); ++i) EXPECT_EQ(to_vector<float>(stored[i]), to_vector<float>(again[i])) << i;
}

TEST(StoriesGolden, TenAdamWSteps) {
  auto loaded = load_stories();
  models::make_trainable(*loaded.model);
  std::vector<int32_t> ids = ids_of(stories_golden().at("nll_shakespeare").at("ids"));
  const Json& trace = stories_golden().at("adamw_trace");
  auto parameters = loaded.model->trainable_parameters();
  optim::AdamW optimizer(parameters, {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1});
  auto batch = models::TokenBatch::from({ids});
  Tensor targets = next_token_targets(ids);
  double share = 1.0 / static_cast<double>(ids.size() - 1);
  for (const Json& row : trace.at("loss_and_grad_norm_before_clip").items()) {
    optimizer.zero_grad();
    Tensor loss = loaded.model->loss_sum(batch, targets) * share;
    backward(loss);
    double norm = optim::clip_grad_norm(parameters, 1.0);
    double expected_loss = row.items()[0].as_double(), expected_norm = row.items()[1].as_double();
    EXPECT_NEAR(loss.item(), expected_loss, 1e-5 * expected_loss);
    EXPECT_NEAR(norm, expected_norm, 1e-4 * expected_norm);
    optimizer.step();
  }
  double last = trace.get<double>("final_loss");
  EXPECT_NEAR(mean_nll(*loaded.model, ids), last, 1e-5 * last);
}

TEST(StoriesGolden, GreedyTextOfEveryPrompt) {
  auto loaded = load_stories();
  for (const Json& p : stories_golden().at("prompts").items()) {
    std::string prompt = p.get<std::string>("prompt");
    std::vector<int32_t> ids = loaded.tokenizer->encode(prompt, {.add_special = true});
    EXPECT_EQ(ids, ids_of(p.at("ids"))) << prompt;
    std::vector<int32_t> expected = ids_of(p.at("greedy_ids"));
    auto out = models::generate(*loaded.model, {ids}, {.max_new_tokens = static_cast<int64_t>(expected.size())});
    EXPECT_EQ(out[0].ids, expected) << prompt;
    ids.insert(ids.end(), out[0].ids.begin(), out[0].ids.end());
    EXPECT_EQ(loaded.tokenizer->decode(ids, true), p.get<std::string>("greedy_text"));
  }
  const Json& long_text = stories_golden().at("greedy200");
  std::vector<int32_t> ids = ids_of(long_text.at("ids"));
  auto out = models::generate(*loaded.model, {{ids[0]}}, {.max_new_tokens = static_cast<int64_t>(ids.size()) - 1});
  out[0].ids.insert(out[0].ids.begin(), ids[0]);
  EXPECT_EQ(out[0].ids, ids);
}

TEST(StoriesGolden, AdapterGivesItsLogitsLossAndGradients) {
  auto loaded = load_stories();
  auto folder = stories_folder() / "lora_shakespeare";
  models::LoadedAdapter adapter = models::load_adapter(*loaded.model, folder);
  EXPECT_TRUE(adapter.warnings.empty());
  loaded.model->eval();
  Json golden = Json::parse_file(folder / "golden.json");
  std::vector<int32_t> ids = ids_of(stories_golden().at("nll_shakespeare").at("ids"));
  EXPECT_NEAR(mean_nll(*loaded.model, ids), golden.get<double>("adapter_mean_nll"), 1e-5);
  models::enable_lora(*loaded.model, false);
  EXPECT_NEAR(mean_nll(*loaded.model, ids), golden.get<double>("base_mean_nll"), 1e-5);
  models::enable_lora(*loaded.model, true);

  SafetensorsFile numbers = SafetensorsFile::open(folder / "golden.safetensors");
  ASSERT_EQ(to_vector<int32_t>(numbers.tensor("ids")), ids);
  auto batch = models::TokenBatch::from({ids});
  {
    NoGrad off;
    Tensor last = narrow(loaded.model->logits(batch), 0, static_cast<int64_t>(ids.size()) - 16, 16);
    EXPECT_LE(max_difference(last, numbers.tensor("logits_last16")), 1e-4);
  }
  Tensor loss = loaded.model->loss_sum(batch, next_token_targets(ids)) * (1.0 / static_cast<double>(ids.size() - 1));
  backward(loss);
  for (auto& [name, tensor] : models::adapter_tensors(*loaded.model)) {
    Tensor expected = numbers.tensor("grad." + name);
    ASSERT_TRUE(grad(tensor)) << name;
    EXPECT_LE(max_difference(grad(tensor), expected), 1e-4 * max_abs(expected)) << name;
  }
  for (const auto& p : loaded.model->named_parameters()) {
    bool adapter_parameter = p.name.find("lora_") != std::string::npos;
    EXPECT_EQ(grad(p.tensor).defined(), adapter_parameter) << p.name;
  }
}

TEST(StoriesGolden, ShardedBf16Copy) {
  auto folder = stories_folder() / "sharded_bf16";
  auto loaded = models::load_model(folder);
  Json golden = Json::parse_file(folder / "golden.json");
  EXPECT_NEAR(mean_nll(*loaded.model, ids_of(stories_golden().at("nll").at("ids"))), golden.get<double>("mean_nll"),
              1e-5);
  EXPECT_NEAR(mean_nll(*loaded.model, ids_of(stories_golden().at("nll_shakespeare").at("ids"))),
              golden.get<double>("mean_nll_shakespeare"), 1e-5);
}

}  // namespace
}  // namespace strata
