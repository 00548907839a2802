// LoRA fine-tuning of SmolLM2-135M against transformers + PEFT in f32 with the same batches and the same initial A
// (tests/golden/smollm2_lora_reference.py states the rule). The first steps run with every test; the whole epoch is
// labelled slow.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "apps/model_flags.h"
#include "autograd/autograd.h"
#include "data/instruct/batches.h"
#include "data/instruct/seeded_order.h"
#include "data/instruct/split.h"
#include "models/generation.h"
#include "optim/optimizer.h"
#include "optim/training/step.h"
#include "tests/models/smollm2.h"
#include "tests/models/stories.h"

namespace strata {
namespace {

using namespace strata::test;  // NOLINT

uint64_t fnv1a64(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

class SmolLM2Lora : public testing::Test {
 protected:
  void SetUp() override {
    STRATA_NEEDS_SMOLLM2();
    auto root = std::filesystem::path(STRATA_SOURCE_DIR) / "tests";
    if (!std::filesystem::exists(root / "golden/smollm2_lora_reference.json")) GTEST_SKIP() << "no reference file";
    golden = Json::parse_file(root / "golden/smollm2_lora_reference.json");
    loaded = models::load_model(smollm2_path());
    form.emplace(data::Template::named("chatml", loaded.tokenizer));
    data::DataSet set = data::read_records(root / "data/instruct/instruction-data.json");
    split = data::split_records(static_cast<int64_t>(set.records.size()));
    train = encoded(set, split.train);
    validation = encoded(set, split.validation);
    test = encoded(set, split.test);
    add_adapters();
  }

  std::vector<data::EncodedRecord> encoded(const data::DataSet& set, const std::vector<int64_t>& which) {
    std::vector<data::EncodedRecord> out;
    for (int64_t i : which) out.push_back(data::encode_record(set.records[static_cast<size_t>(i)], *form));
    return out;
  }

  void add_adapters() {
    models::AdapterConfig config;
    config.lora = {.r = 16, .alpha = 32};
    config.target_pattern = "all-linear";
    models::add_lora(*loaded.model, config, 0);
    for (auto& [path, layer] : models::lora_layers(*loaded.model)) {
      float* a = layer->a.mutable_data<float>();
      auto root = static_cast<float>(std::sqrt(static_cast<double>(layer->in_features())));
      for (int64_t i = 0; i < layer->a.numel(); ++i) {
        uint64_t word = data::splitmix64(fnv1a64(path) + static_cast<uint64_t>(i)) >> 40;
        a[i] = (2 * static_cast<float>(word) * 0x1p-24f - 1) / root;
      }
    }
  }

  double loss_of(const std::vector<data::EncodedRecord>& records) {
    NoGrad off;
    double sum = 0;
    int64_t counted = 0;
    for (size_t at = 0; at < records.size(); at += 8) {
      std::vector<int64_t> positions;
      for (size_t i = at; i < std::min(records.size(), at + 8); ++i) positions.push_back(static_cast<int64_t>(i));
      apps::ModelBatch b = apps::to_model_batch(data::ragged_batch(records, positions));
      sum += loaded.model->loss_sum(b.tokens, b.targets).item();
      counted += b.counted;
    }
    return sum / static_cast<double>(counted);
  }

  /// Runs steps [0, count) and calls check(step, result) after each.
  template <class F>
  void run_steps(int64_t count, F&& check) {
    optim::AdamW optimizer(loaded.model->trainable_parameters(), {.lr = 2e-4, .weight_decay = 0});
    const auto& trace = golden.at("trace").items();
    for (int64_t step = 0; step < count; ++step) {
      std::vector<int64_t> positions;
      for (int64_t i = 8 * step; i < std::min<int64_t>(8 * step + 8, static_cast<int64_t>(train.size())); ++i)
        positions.push_back(i);
      apps::ModelBatch b = apps::to_model_batch(data::ragged_batch(train, positions));
      optimizer.set_lr(trace[static_cast<size_t>(step)].get<double>("lr"));
      auto loss = [&] { return loaded.model->loss_sum(b.tokens, b.targets); };
      check(trace[static_cast<size_t>(step)], optim::train_step(optimizer, {{loss, b.counted}}, 1.0));
    }
  }

  Json golden;
  models::LoadedModel loaded;
  std::optional<data::Template> form;
  data::Split split;
  std::vector<data::EncodedRecord> train, validation, test;
};

TEST_F(SmolLM2Lora, RecordsAreTokenisedAndMaskedAlike) {
  const auto& first = golden.at("permutation_first").items();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(split.train[i], first[i].as_int());
  const auto& records = golden.at("records").items();
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(train[i].ids, ids_of(records[i].at("ids"))) << i;
    EXPECT_EQ(train[i].prompt_length, records[i].get<int64_t>("first_counted")) << i;
    EXPECT_EQ(data::counted_tokens(train[i]), records[i].get<int64_t>("counted")) << i;
  }
  for (const auto& [name, given] : golden.at("initial_a").members())
    for (auto& [path, layer] : models::lora_layers(*loaded.model))
      for (size_t i = 0; path == name && i < 4; ++i)
        EXPECT_EQ(to_vector<float>(layer->a)[i], static_cast<float>(given.at("first").items()[i].as_double())) << name;
}

TEST_F(SmolLM2Lora, FirstStepsFollowPeft) {
  run_steps(2, [](const Json& expected, const optim::StepResult& r) {
    double loss = expected.get<double>("loss"), norm = expected.get<double>("grad_norm");
    EXPECT_EQ(r.counted, expected.get<int64_t>("counted_tokens"));
    EXPECT_NEAR(r.loss, loss, 1e-4 * loss);
    EXPECT_NEAR(r.grad_norm, norm, 1e-3 * norm);
  });
}

// About five minutes on two cores: ctest -L slow.
TEST_F(SmolLM2Lora, SlowWholeEpochEndsWherePeftEnds) {
  loaded.model->eval();
  double before = golden.at("validation_before").get<double>("loss");
  EXPECT_NEAR(loss_of(validation), before, 1e-4 * before);
  double worst = 0;
  run_steps(static_cast<int64_t>(golden.at("trace").size()), [&](const Json& expected, const optim::StepResult& r) {
    worst = std::max(worst, std::abs(r.loss / expected.get<double>("loss") - 1));
  });
  double after = golden.at("validation_after").get<double>("loss");
  double ours = loss_of(validation);
  RecordProperty("validation_loss", std::to_string(ours));
  std::printf("validation loss %.6f, PEFT %.6f; largest relative difference of a step's loss %.2g\n", ours, after,
              worst);
  EXPECT_NEAR(ours, after, 0.02 * after);
  const auto& answers = golden.at("tuned_greedy").items();
  for (size_t i = 0; i < answers.size(); ++i) {
    auto out = models::generate(*loaded.model, {ids_of(answers[i].at("prompt_ids"))}, {.max_new_tokens = 8});
    std::vector<int32_t> expected = ids_of(answers[i].at("new_ids"));
    expected.resize(std::min<size_t>(expected.size(), 8));
    bool clear = answers[i].get<double>("min_margin") > 0.05;  // else rounding may decide
    EXPECT_TRUE(!clear || out[0].ids == expected) << i;
  }
}

}  // namespace
}  // namespace strata
