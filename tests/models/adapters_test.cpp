#include "models/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <set>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "models/generation.h"
#include "optim/optimizer.h"
#include "optim/training/step.h"
#include "tensor/random.h"
#include "tests/models/stories.h"

namespace strata::models {
namespace {

namespace fs = std::filesystem;
using namespace strata::test;  // NOLINT
using testing::ElementsAre;
using testing::HasSubstr;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("strata-adapter-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path), fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

AdapterConfig config_of(const std::string& json, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> list;
  AdapterConfig c = AdapterConfig::from_json(Json::parse(json, "adapter_config.json"), list);
  if (warnings) *warnings = list;
  return c;
}

const std::string kPlain = R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"])";

TEST(LoraLinear, ScaleIsAlphaOverRank) {
  Generator generator(1);
  auto base = std::make_shared<nn::Linear>(zeros({8, 8}), Tensor());
  nn::LoraLinear lora(base, {.r = 8, .alpha = 16}, generator);
  EXPECT_EQ(lora.scale(), 2);
  fill_(lora.a, 1.0 / 8);  // A x = 1 in every row for x = 1
  fill_(lora.b, 1.0 / 8);  // B A x = 1
  EXPECT_NEAR(to_vector<float>(lora.forward(ones({1, 8})))[3], 2, 1e-6);
  EXPECT_EQ((nn::LoraOptions{.r = 16, .alpha = 16, .use_rslora = true}.scale()), 4);
  EXPECT_EQ((nn::LoraOptions{.r = 16, .alpha = 16}.scale()), 1);
}

TEST(LoraLinear, StartsAsTheBaseAndDropoutIsOffInEval) {
  Generator generator(1);
  auto base = std::make_shared<nn::Linear>(rand({12, 8}), rand({12}));
  nn::LoraLinear lora(base, {.r = 4, .alpha = 8, .dropout = 0.5}, generator);
  Tensor x = rand({5, 8});
  EXPECT_EQ(to_vector<float>(lora.forward(x)), to_vector<float>(base->forward(x)));
  fill_(lora.b, 0.5);
  lora.eval();
  Tensor y = lora.forward(x);
  EXPECT_EQ(to_vector<float>(y), to_vector<float>(lora.forward(x)));
  lora.train();
  EXPECT_NE(to_vector<float>(y), to_vector<float>(lora.forward(x)));
}

TEST(AdapterConfig, PatternsOverrideRankAndAlpha) {
  AdapterConfig c = config_of(kPlain + R"(, "rank_pattern": {"layers.3": 1, "layers.1.self_attn.q_proj": 32},
                                           "alpha_pattern": {"layers.1.self_attn.q_proj": 128}})");
  EXPECT_EQ(c.options_for("model.layers.1.self_attn.q_proj").r, 32);
  EXPECT_EQ(c.options_for("model.layers.1.self_attn.q_proj").scale(), 4);
  EXPECT_EQ(c.options_for("model.layers.11.self_attn.q_proj").r, 8);
  EXPECT_EQ(c.options_for("model.layers.11.self_attn.q_proj").scale(), 2);
  EXPECT_EQ(config_of(kPlain + R"(, "rank_pattern": {"q_proj": 4}})").options_for("model.layers.11.self_attn.q_proj").r,
            4);
}

TEST(AdapterConfig, TargetsByNameSuffixOrWholePattern) {
  AdapterConfig names = config_of(kPlain + "}");
  EXPECT_TRUE(names.targets("model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(names.targets("model.layers.0.self_attn.k_proj"));
  EXPECT_FALSE(names.targets("model.layers.0.self_attn.xq_proj"));
  AdapterConfig pattern = names;
  pattern.target_pattern = R"(model\.layers\.[01]\..*_proj)";
  EXPECT_TRUE(pattern.targets("model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(pattern.targets("model.layers.2.mlp.up_proj"));
  pattern.target_pattern = "all-linear";
  EXPECT_TRUE(pattern.targets("model.layers.2.mlp.up_proj"));
  EXPECT_FALSE(pattern.targets("lm_head"));
}

TEST(AdapterConfig, FieldsFromTheFutureAndThePast) {
  std::vector<std::string> warnings;
  config_of(kPlain + R"(, "new1": null, "new2": false, "new3": {}, "enable_lora": null, "merge_weights": false})",
            &warnings);
  EXPECT_TRUE(warnings.empty());
  config_of(kPlain + R"(, "foo": 3})", &warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("'foo'"));
  for (const char* bad : {R"("layer_replication": [[0, 4], [2, 5]])", R"("alora_invocation_tokens": [1, 2])",
                          R"("use_qalora": true)", R"("use_dora": true)", R"("bias": "all")",
                          R"("init_lora_weights": "pissa")", R"("modules_to_save": ["lm_head"])"})
    EXPECT_THROW(config_of(kPlain + ", " + bad + "}"), FormatError) << bad;
  EXPECT_THROW(config_of(R"({"peft_type": "IA3"})"), FormatError);
  EXPECT_THROW(config_of(R"({"peft_type": "LORA", "r": 0, "lora_alpha": 1, "target_modules": []})"), FormatError);
  EXPECT_THROW(config_of(R"({"peft_type": "LORA", "r": "8", "lora_alpha": 1, "target_modules": []})"), FormatError);
}

TEST(AdapterConfig, OwnFileHoldsOnlyFieldsPeft09Knows) {
  AdapterConfig c = config_of(kPlain + "}");
  const std::set<std::string> known = {"alpha_pattern",
                                       "auto_mapping",
                                       "base_model_name_or_path",
                                       "bias",
                                       "fan_in_fan_out",
                                       "inference_mode",
                                       "init_lora_weights",
                                       "layers_pattern",
                                       "layers_to_transform",
                                       "loftq_config",
                                       "lora_alpha",
                                       "lora_dropout",
                                       "megatron_config",
                                       "megatron_core",
                                       "modules_to_save",
                                       "peft_type",
                                       "r",
                                       "rank_pattern",
                                       "revision",
                                       "target_modules",
                                       "task_type",
                                       "use_dora",
                                       "use_rslora"};
  Json own = c.to_json();
  for (const auto& [key, value] : own.members()) EXPECT_TRUE(known.contains(key)) << key;
  std::vector<std::string> warnings;
  EXPECT_EQ(AdapterConfig::from_json(c.to_json(), warnings).to_json(), c.to_json());
  EXPECT_TRUE(warnings.empty());
}

TEST(AddLora, NamesMissingTargetsAndTheNearest) {
  auto loaded = load_stories();
  AdapterConfig c = config_of(kPlain + "}");
  c.target_modules = {"q_proj", "qproj"};
  std::string error = error_of([&] { add_lora(*loaded.model, c, 1); });
  EXPECT_THAT(error, HasSubstr("target 'qproj' matches no linear layer"));
  EXPECT_THAT(error, HasSubstr("nearest: q_proj"));
  c.target_modules = {"q_proj", "v_proj"};
  auto counts = add_lora(*loaded.model, c, 1);
  for (const auto& t : counts) {
    EXPECT_EQ(t.total, 5);
    EXPECT_EQ(t.matched, t.kind == "q_proj" || t.kind == "v_proj" ? 5 : 0) << t.kind;
  }
  EXPECT_EQ(loaded.model->trainable_parameters().size(), 20u);
}

TEST(AddLora, InitialValuesDependOnSeedAndPathAlone) {
  auto values = [](uint64_t seed, std::vector<std::string> targets) {
    auto loaded = load_stories();
    AdapterConfig c = config_of(kPlain + "}");
    c.target_modules = std::move(targets);
    add_lora(*loaded.model, c, seed);
    for (auto& [path, layer] : lora_layers(*loaded.model))
      if (path == "model.layers.2.self_attn.v_proj") return to_vector<float>(layer->a);
    return std::vector<float>();
  };
  EXPECT_EQ(values(1, {"v_proj"}), values(1, {"q_proj", "up_proj", "v_proj"}));
  EXPECT_NE(values(1, {"v_proj"}), values(2, {"v_proj"}));
}

// A trained adapter with B != 0.
LoadedModel tuned_stories(AdapterConfig& c, const std::string& extra = "}") {
  auto loaded = load_stories();
  c = config_of(kPlain + extra);
  add_lora(*loaded.model, c, 3);
  Generator generator(9);
  for (auto& [path, layer] : lora_layers(*loaded.model)) normal_(layer->b, 0, 0.02, generator);
  loaded.model->eval();
  return loaded;
}

std::vector<int32_t> some_ids() {
  return ids_of(stories_golden().at("nll").at("ids"));
}

Tensor logits_of(LoadedModel& loaded) {
  NoGrad off;
  return loaded.model->logits(TokenBatch::from({some_ids()}));
}

TEST(AdapterFiles, SavedAndLoadedGiveTheSameLogits) {
  Folder f;
  for (const char* extra :
       {"}", R"(, "use_rslora": true})", R"(, "rank_pattern": {"layers.1.self_attn.q_proj": 4}})"}) {
    AdapterConfig c;
    LoadedModel tuned = tuned_stories(c, extra);
    save_adapter(*tuned.model, c, f.path, Json::object().set("template", "alpaca"));
    auto again = load_stories();
    LoadedAdapter adapter = load_adapter(*again.model, f.path);
    again.model->eval();
    EXPECT_TRUE(adapter.warnings.empty());
    EXPECT_EQ(adapter.extra.get<std::string>("template"), "alpaca");
    EXPECT_EQ(to_vector<float>(logits_of(tuned)), to_vector<float>(logits_of(again))) << extra;
  }
}

TEST(AdapterFiles, OneThatPeftSavedGivesPeftsLogits) {
  auto folder = fs::path(STRATA_SOURCE_DIR) / "tests/golden/peft_stories_adapter";
  Json golden = Json::parse_file(folder / "logits.json");
  auto loaded = load_stories();
  LoadedAdapter adapter = load_adapter(*loaded.model, folder);
  EXPECT_TRUE(adapter.warnings.empty());
  loaded.model->eval();
  std::vector<int32_t> ids = ids_of(golden.at("ids"));
  NoGrad off;
  std::vector<double> logits = to_vector<double>(loaded.model->logits(TokenBatch::from({ids})));
  size_t vocabulary = 512, first = (ids.size() - 2) * vocabulary;
  for (size_t row = 0; row < 2; ++row)
    for (size_t v = 0; v < vocabulary; ++v)
      ASSERT_NEAR(logits[first + row * vocabulary + v], golden.at("logits").items()[row].items()[v].as_double(), 1e-4);
}

TEST(AdapterFiles, AnyFolderNameWorks) {
  Folder f;
  AdapterConfig c;
  LoadedModel tuned = tuned_stories(c);
  for (const char* name : {"lora", "lora_A", "default", "weight", "base_model"}) {
    save_adapter(*tuned.model, c, f.path / name);
    auto again = load_stories();
    EXPECT_NO_THROW(load_adapter(*again.model, f.path / name)) << name;
  }
}

void write_tensors(const fs::path& folder, std::vector<std::pair<std::string, Tensor>> tensors) {
  save_safetensors(folder / "adapter_model.safetensors", tensors);
}

TEST(AdapterFiles, AnythingThatDoesNotFitIsRefused) {
  Folder f;
  AdapterConfig c;
  LoadedModel tuned = tuned_stories(c);
  save_adapter(*tuned.model, c, f.path);
  auto tensors = adapter_tensors(*tuned.model);
  auto load = [&] {
    auto again = load_stories();
    return error_of([&] { load_adapter(*again.model, f.path); });
  };
  auto renamed = tensors;
  renamed[0].first = "base_model.model.model.layers.0.self_attn.q_proj.lora_X.weight";
  write_tensors(f.path, renamed);
  EXPECT_THAT(load(), HasSubstr("missing (1): base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"));
  EXPECT_THAT(load(), HasSubstr("unexpected (1): base_model.model.model.layers.0.self_attn.q_proj.lora_X.weight"));
  auto other_base = tensors;
  other_base[0].second = zeros({8, 96});
  write_tensors(f.path, other_base);
  EXPECT_THAT(load(), HasSubstr("belongs to another base model"));
  auto deeper = tensors;
  deeper.emplace_back("base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight", zeros({8, 64}));
  write_tensors(f.path, deeper);
  EXPECT_THAT(load(), HasSubstr("unexpected (1)"));
  auto idle = tensors;
  for (auto& [name, t] : idle)
    if (name.ends_with("lora_B.weight")) t = zeros(t.shape());
  write_tensors(f.path, idle);
  auto again = load_stories();
  EXPECT_THAT(load_adapter(*again.model, f.path).warnings, ElementsAre(HasSubstr("no effect")));
  fs::remove(f.path / "adapter_model.safetensors");
  EXPECT_THAT(load(), HasSubstr("adapter_model.safetensors is missing"));
  std::ofstream(f.path / "adapter_config.json") << "{\"peft_type\": \"LORA\"";
  std::ofstream(f.path / "adapter_model.safetensors") << "x";
  EXPECT_THAT(load(), HasSubstr("not valid JSON"));
}

optim::MicroBatch micro(Decoder& model, const std::vector<std::vector<int32_t>>& texts) {
  std::vector<int32_t> targets;
  int64_t counted = 0;
  for (const auto& t : texts) {
    targets.insert(targets.end(), t.begin() + 1, t.end());
    targets.push_back(-100);
    counted += static_cast<int64_t>(t.size()) - 1;
  }
  auto n = static_cast<int64_t>(targets.size());
  Tensor target = from_values(targets, {n});
  TokenBatch batch = TokenBatch::from(texts);
  return {[&model, batch, target] { return model.loss_sum(batch, target); }, counted};
}

std::vector<std::vector<int32_t>> eight_texts() {
  std::vector<int32_t> ids = ids_of(stories_golden().at("nll_shakespeare").at("ids"));
  std::vector<std::vector<int32_t>> texts;
  for (int n : {3, 41, 8, 17, 2, 60, 29, 11}) texts.emplace_back(ids.begin() + n, ids.begin() + 2 * n + 2);
  return texts;
}

// Greatest difference of two gradients, relative to the greatest element.
double relative_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, max_difference(a[i], b[i]));
    size = std::max(size, max_abs(b[i]));
  }
  return difference / size;
}

class Accumulation : public testing::TestWithParam<DType> {};

TEST_P(Accumulation, OfUnequalPartsEqualsOneBatch) {
  AdapterConfig c;
  LoadedModel tuned = tuned_stories(c);
  tuned.model->to(GetParam());
  auto texts = eight_texts();
  std::vector<double> losses;
  auto gradient = [&](const std::vector<size_t>& sizes) {
    tuned.model->zero_grad();
    std::vector<optim::MicroBatch> parts;
    size_t at = 0;
    for (size_t n : sizes) {
      parts.push_back(micro(*tuned.model, {texts.begin() + static_cast<std::ptrdiff_t>(at),
                                           texts.begin() + static_cast<std::ptrdiff_t>(at + n)}));
      at += n;
    }
    optim::StepResult r = optim::accumulate_gradients(parts);
    std::vector<Tensor> all;
    losses.push_back(r.loss);
    for (const auto& p : tuned.model->trainable_parameters()) all.push_back(grad(p.tensor));
    return all;
  };
  auto whole = gradient({8});
  // f64 shows that the formula is exact. In f32 BLAS rounds products of other sizes otherwise: the parts' gradient must
  // be as close to the f64 one as the whole batch's is.
  bool exact = GetParam() == DType::f64;
  std::vector<Tensor> truth = whole;
  if (!exact) {
    tuned.model->to(DType::f64);
    truth = gradient({8});
    tuned.model->to(DType::f32);
  }
  double rounding = relative_difference(whole, truth);
  EXPECT_LE(rounding, 1e-5);
  for (const auto& sizes : std::vector<std::vector<size_t>>{{2, 2, 2, 2}, {1, 7}, {3, 5}, {1, 1, 1, 1, 1, 1, 1, 1}}) {
    EXPECT_LE(relative_difference(gradient(sizes), truth), exact ? 1e-12 : 2 * rounding);
    EXPECT_NEAR(losses.back(), losses.front(), 1e-6 * losses.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Accumulation, testing::Values(DType::f32, DType::f64));

TEST(LoraTraining, EveryBMovesInTheFirstStepWithAndWithoutCheckpointing) {
  for (bool checkpointing : {false, true}) {
    auto loaded = load_stories();
    AdapterConfig c = config_of(kPlain + "}");
    c.target_pattern = "all-linear";
    add_lora(*loaded.model, c, 1);
    loaded.model->train();
    loaded.model->set_checkpointing(checkpointing);
    optim::AdamW optimizer(loaded.model->trainable_parameters(), {.lr = 1e-3});
    optim::train_step(optimizer, {micro(*loaded.model, eight_texts())}, 1);
    for (auto& [path, layer] : lora_layers(*loaded.model)) EXPECT_GT(max_abs(layer->b), 0) << path;
  }
}

TEST(LoraTraining, CheckpointingGivesTheSameBits) {
  AdapterConfig c;
  LoadedModel tuned = tuned_stories(c);
  auto gradient = [&](bool on) {
    tuned.model->set_checkpointing(on);
    tuned.model->zero_grad();
    optim::accumulate_gradients({micro(*tuned.model, eight_texts())});
    std::vector<float> all;
    for (const auto& p : tuned.model->trainable_parameters())
      for (float v : to_vector<float>(grad(p.tensor))) all.push_back(v);
    return all;
  };
  EXPECT_EQ(gradient(false), gradient(true));
}

TEST(LoraTraining, FrozenWeightsKeepNoActivation) {
  auto peak = [](bool full) {
    auto loaded = load_stories();
    if (full) {
      make_trainable(*loaded.model);
    } else {
      AdapterConfig c = config_of(kPlain + "}");
      add_lora(*loaded.model, c, 1);
    }
    ledger::reset_peak();
    optim::AdamW optimizer(loaded.model->trainable_parameters());
    optim::train_step(optimizer, {micro(*loaded.model, eight_texts())}, 1);
    return ledger::peak_by_kind();
  };
  MemoryUse lora = peak(false), full = peak(true);
  // q and v adapters only: the MLP's inputs, which full training keeps for dW, are not kept.
  EXPECT_LT(lora[MemoryKind::activation], full[MemoryKind::activation] * 8 / 10);
  EXPECT_LT(lora[MemoryKind::gradient], full[MemoryKind::gradient] / 4);
  EXPECT_LT(lora[MemoryKind::optimizer], full[MemoryKind::optimizer] / 4);
  EXPECT_LT(lora.total(), full.total());
}

TEST(Training, ATinyModelLearnsToStop) {
  // Eight answers of ten tokens that end with the end token, which is the pad token too.
  auto loaded = load_stories();
  make_trainable(*loaded.model);
  std::vector<int32_t> ids = some_ids();
  std::vector<std::vector<int32_t>> texts, prompts;
  for (int i = 0; i < 8; ++i) {
    std::vector<int32_t> text(ids.begin() + 12 * i, ids.begin() + 12 * i + 14);  // 4 of prompt, 10 of answer
    text[0] = 1;
    prompts.emplace_back(text.begin(), text.begin() + 4);
    text.push_back(2);
    texts.push_back(text);
  }
  optim::AdamW optimizer(loaded.model->trainable_parameters(), {.lr = 2e-3, .weight_decay = 0});
  for (int step = 0; step < 30; ++step) optim::train_step(optimizer, {micro(*loaded.model, texts)}, 1);
  loaded.model->eval();
  int stopped = 0;
  for (const Generation& g : generate(*loaded.model, prompts, {.max_new_tokens = 40, .stop_ids = {2}}))
    stopped += g.finish_reason == "stop";
  EXPECT_EQ(stopped, 8);
}

TEST(LoraTraining, LowerLayersWithoutAdaptersAreNotRecomputedAndGetNoGraph) {
  auto loaded = load_stories();
  AdapterConfig c = config_of(kPlain + "}");
  c.target_pattern = R"(model\.layers\.4\..*)";
  add_lora(*loaded.model, c, 1);
  auto loss = micro(*loaded.model, eight_texts());
  int64_t nodes = graph_size(loss.loss_sum());
  c.target_pattern = "all-linear";
  auto whole = load_stories();
  add_lora(*whole.model, c, 1);
  EXPECT_LT(nodes, graph_size(micro(*whole.model, eight_texts()).loss_sum()) / 3);
}

}  // namespace
}  // namespace strata::models
