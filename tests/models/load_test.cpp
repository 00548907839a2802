#include "models/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "autograd/autograd.h"
#include "models/weight_files.h"
#include "tensor/random.h"
#include "tests/models/stories.h"

namespace strata::models {
namespace {

namespace fs = std::filesystem;
using namespace strata::test;  // NOLINT
using testing::HasSubstr;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("strata-load-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path), fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

DecoderConfig tiny(bool tied) {
  DecoderConfig c;
  c.vocab_size = 32, c.hidden_size = 16, c.intermediate_size = 24, c.layers = 2, c.heads = 4, c.kv_heads = 2,
  c.head_dim = 4;
  c.max_positions = 64, c.tied_embeddings = tied, c.initializer_range = 0.2;
  return c;
}

std::vector<std::pair<std::string, Tensor>> tensors_of(const Decoder& model) {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& p : model.named_parameters()) all.emplace_back(p.name, p.tensor);
  return all;
}

void write_model(const fs::path& folder, const Json& config,
                 const std::vector<std::pair<std::string, Tensor>>& tensors) {
  save_safetensors(folder / "model.safetensors", tensors);
  std::ofstream(folder / "config.json") << config.dump(2);
}

std::string load_error(const fs::path& folder) {
  try {
    load_model(folder);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Tensor logits_of(Decoder& model) {
  NoGrad off;
  return model.logits(TokenBatch::from({{1, 5, 9, 31, 7, 2, 2, 8}}));
}

TEST(LoadModel, SavedAndLoadedAreTheSameModel) {
  Folder f;
  for (bool tied : {true, false}) {
    auto model = Decoder::random(tiny(tied), 7);
    save_model(*model, f.path);
    auto loaded = load_model(f.path);
    EXPECT_EQ(loaded.model->tied(), tied);
    EXPECT_TRUE(loaded.notes.empty());
    EXPECT_EQ(to_vector<float>(logits_of(*model)), to_vector<float>(logits_of(*loaded.model)));
    EXPECT_TRUE(loaded.model->trainable_parameters().empty());
  }
}

TEST(LoadModel, TiedHeadWhereConfigAndFileDisagree) {
  Folder f;
  auto model = Decoder::random(tiny(true), 7);
  auto tensors = tensors_of(*model);
  Tensor embedding = tensors[0].second;
  Json tied = model->config().to_hf();
  Json untied = model->config().to_hf();
  untied.set("tie_word_embeddings", false);
  std::vector<float> expected = to_vector<float>(logits_of(*model));

  write_model(f.path, tied, tensors);  // tied + no head
  EXPECT_TRUE(load_model(f.path).model->tied());
  auto with_head = tensors;
  with_head.emplace_back("lm_head.weight", embedding);
  write_model(f.path, tied, with_head);  // tied + equal head
  auto equal = load_model(f.path);
  EXPECT_TRUE(equal.model->tied());
  EXPECT_TRUE(equal.notes.empty());
  EXPECT_EQ(to_vector<float>(logits_of(*equal.model)), expected);
  with_head.back().second = rand({32, 16});
  write_model(f.path, tied, with_head);  // tied + different head: keep it, say so
  auto different = load_model(f.path);
  EXPECT_FALSE(different.model->tied());
  ASSERT_EQ(different.notes.size(), 1u);
  EXPECT_THAT(different.notes[0], HasSubstr("kept separate"));
  EXPECT_NE(to_vector<float>(logits_of(*different.model)), expected);
  Folder g;
  fs::create_directories(g.path / "saved");
  save_model(*different.model, g.path / "saved");  // the saved config agrees with the tensors
  EXPECT_FALSE(load_model(g.path / "saved").model->tied());
  EXPECT_TRUE(load_model(g.path / "saved").notes.empty());
  fs::create_directories(f.path);
  write_model(f.path, untied, tensors);  // untied + no head: tie, say so, never random
  auto missing = load_model(f.path);
  EXPECT_TRUE(missing.model->tied());
  ASSERT_EQ(missing.notes.size(), 1u);
  EXPECT_EQ(to_vector<float>(logits_of(*missing.model)), expected);
}

TEST(LoadModel, AllProblemsAreNamedTogether) {
  Folder f;
  auto model = Decoder::random(tiny(true), 7);
  auto tensors = tensors_of(*model);
  tensors.erase(tensors.begin() + 3);
  tensors.emplace_back("model.layers.0.self_attn.q_proj.bias", zeros({16}));
  tensors[1].second = zeros({16, 17});
  write_model(f.path, model->config().to_hf(), tensors);
  std::string error = load_error(f.path);
  EXPECT_THAT(error, HasSubstr("missing (1)"));
  EXPECT_THAT(error, HasSubstr("unexpected (1): model.layers.0.self_attn.q_proj.bias"));
  EXPECT_THAT(error, HasSubstr("shapes that differ (1)"));
  EXPECT_THAT(error, HasSubstr("got [16, 17]"));
}

TEST(LoadModel, ConfigsThatCannotBeRight) {
  Folder f;
  auto model = Decoder::random(tiny(true), 7);
  auto with = [&](const std::string& key, Json value) {
    Json config = model->config().to_hf();
    config.set(key, std::move(value));
    write_model(f.path, config, tensors_of(*model));
    return load_error(f.path);
  };
  EXPECT_THAT(with("model_type", "mamba"), HasSubstr("field 'model_type'"));
  EXPECT_THAT(with("hidden_act", "gelu"), HasSubstr("field 'hidden_act'"));
  EXPECT_THAT(with("num_key_value_heads", 3), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(with("hidden_size", -1), HasSubstr("'hidden_size'"));
  EXPECT_THAT(with("hidden_size", 1LL << 62), HasSubstr("'hidden_size'"));
  EXPECT_THAT(with("num_hidden_layers", 1LL << 40), HasSubstr("'num_hidden_layers'"));
  EXPECT_THAT(with("head_dim", 3), HasSubstr("'head_dim'"));
  EXPECT_THAT(with("vocab_size", "32"), HasSubstr("field 'vocab_size': expected integer"));
  EXPECT_THAT(with("rms_norm_eps", 0.0), HasSubstr("'rms_norm_eps'"));
  EXPECT_THAT(with("sliding_window", 4), HasSubstr("field 'sliding_window' is not understood"));
  EXPECT_THAT(with("rope_scaling", Json::object().set("rope_type", "magic")),
              HasSubstr("kind 'magic' is not supported"));
  EXPECT_THAT(with("rope_scaling", Json::object().set("rope_type", "linear").set("factor", 2.0).set("beta", 3)),
              HasSubstr("'rope_scaling.beta' is not understood"));
  EXPECT_THAT(load_error(f.path / "nothing"), HasSubstr("no such file or folder"));
  fs::remove(f.path / "model.safetensors");
  EXPECT_NE(load_error(f.path), "");
}

TEST(LoadModel, StopIdsAreTheUnionOfAllFiles) {
  Folder f;
  auto model = Decoder::random(tiny(true), 7);
  Json config = model->config().to_hf();
  config.set("eos_token_id", 5);
  write_model(f.path, config, tensors_of(*model));
  EXPECT_EQ(load_model(f.path).stop_ids, (std::vector<int64_t>{5}));
  std::ofstream(f.path / "generation_config.json") << R"({"eos_token_id": [7, 9, 5]})";
  EXPECT_EQ(load_model(f.path).stop_ids, (std::vector<int64_t>{7, 9, 5}));
  std::ofstream(f.path / "generation_config.json") << R"({"eos_token_id": "7"})";
  EXPECT_THAT(load_error(f.path), HasSubstr("field 'eos_token_id': expected integer"));
  EXPECT_EQ(load_stories().stop_ids, (std::vector<int64_t>{2}));  // config and tokenizer agree
}

TEST(Rope, Llama3ScalingNumbers) {
  DecoderConfig c = tiny(true);
  c.head_dim = 64, c.rope_theta = 5e5;
  std::vector<double> plain = rope_inverse_frequencies(c);
  c.rope_scaling = {RopeScaling::Kind::llama3, 32, 1, 4, 8192};
  std::vector<double> scaled = rope_inverse_frequencies(c);
  for (size_t i = 0; i <= 14; ++i) EXPECT_EQ(scaled[i], plain[i]) << i;
  EXPECT_NEAR(scaled[15], 1.290547928e-3, 1e-11);
  EXPECT_NEAR(scaled[16], 4.295567966e-4, 1e-12);
  EXPECT_NEAR(scaled[17], 9.708287803e-5, 1e-13);
  EXPECT_NEAR(scaled[18], 1.946163818e-5, 1e-13);
  EXPECT_NEAR(scaled[31], 9.418306725e-8, 1e-16);
}

TEST(Gguf, RowsOfQueryAndKeyComeBackBitForBit) {
  Generator generator(3);
  for (int64_t head_dim : {4, 64}) {
    Tensor w = empty({3 * head_dim, 10});
    normal_(w, 0, 1, generator);
    Tensor interleaved = interleave_rows(w, head_dim);
    EXPECT_EQ(to_vector<float>(deinterleave_rows(interleaved, head_dim)), to_vector<float>(w));
    // Pair i of the half-split order (rows i, i + D / 2) lies side by side in GGUF's.
    EXPECT_EQ(to_vector<float>(interleaved)[10], to_vector<float>(w)[static_cast<size_t>(head_dim / 2 * 10)]);
  }
}

TEST(Gguf, NamesMapBothWays) {
  for (const char* hf : {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
                         "model.layers.12.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight",
                         "model.layers.3.post_attention_layernorm.weight", "model.layers.3.self_attn.k_proj.bias"})
    EXPECT_EQ(hf_name_of_gguf(gguf_name_of_hf(hf)), hf);
  EXPECT_EQ(gguf_name_of_hf("model.layers.12.self_attn.q_proj.weight"), "blk.12.attn_q.weight");
  EXPECT_EQ(hf_name_of_gguf("blk.x"), "");
}

}  // namespace
}  // namespace strata::models
