// `strata inspect` over the model of tests/data and files made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "apps/commands.h"
#include "apps/inspect_file.h"
#include "tensor/create.h"
#include "tensor/error.h"
#include "tensor/io/safetensors.h"
#include "tests/temporary_folder.h"

namespace strata::apps {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kStories = std::filesystem::path(STRATA_TEST_DATA) / "stories260K";

struct Result {
  int code;
  std::string out, err;
};

Result inspect(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "inspect");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int code = run_program(strata_program(), arguments);
  std::string out = testing::internal::GetCapturedStdout();
  return {code, out, testing::internal::GetCapturedStderr()};
}

TEST(Inspect, AModelFolderShowsConfigurationTypesAndLayers) {
  Result result = inspect({kStories.string()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": safetensors, 1020 KiB\n"));
  EXPECT_THAT(result.out, HasSubstr("  num_hidden_layers        5\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("rope_scaling")));  // null says nothing
  EXPECT_THAT(result.out, HasSubstr("total       47  260.0 k  1016 KiB\n"));
  EXPECT_THAT(result.out,
              HasSubstr("model.layers.{0..4}.mlp.down_proj.weight             f32   [64, 172]  5 x 43.0 KiB\n"));
  Result shards = inspect({(kStories / "sharded_bf16").string()});
  EXPECT_THAT(shards.out, HasSubstr(": safetensors, 2 shards, 513 KiB\n"));
  EXPECT_THAT(shards.out, HasSubstr("bf16        47  260.0 k  508 KiB\n"));
}

TEST(Inspect, AnAdapterFolderShowsItsConfiguration) {
  Result result = inspect({(kStories / "lora_shakespeare").string()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": PEFT adapter (safetensors), 189 KiB\n"));
  EXPECT_THAT(result.out, HasSubstr("LoRA of stories260K: rank 8, alpha 16, scale 2 on down_proj, gate_proj, k_proj"));
  EXPECT_THAT(result.out, HasSubstr("  lora_alpha               16\n"));
  EXPECT_THAT(result.out, HasSubstr("base_model.model.model.layers.{0..4}.self_attn.q_proj.lora_A.weight"));
}

TEST(Inspect, AnAdapterThatCannotBeUsedIsStillShown) {
  TemporaryFolder folder;
  save_safetensors(folder / "adapter_model.safetensors", {{"a", ones({2})}});
  folder.write("adapter_config.json", R"({"peft_type": "IA3"})");
  Result result = inspect({folder.path().string()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\ncannot be used here: "));
  EXPECT_THAT(result.out, HasSubstr("\na     f32   [2]      8 B\n"));
}

TEST(Inspect, FilterStatsAndJson) {
  Result result = inspect({kStories.string(), "--filter", "model.norm", "--stats"});
  // min, max, mean and population deviation of NumPy over the same tensor.
  EXPECT_THAT(result.out,
              HasSubstr("model.norm.weight  f32   [64]   256 B   0.972    4.425  1.812     0.5779           0\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("METADATA")));
  Json json = Json::parse(inspect({kStories.string(), "--filter", "model.norm", "--json"}).out, "stdout");
  EXPECT_EQ(json.at("tensors").items().at(0).dump(),
            R"({"name": "model.norm.weight", "type": "f32", "shape": [64], "bytes": 256})");
  Result none = inspect({kStories.string(), "--filter", "lora"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--filter: no tensor's name holds 'lora'"));
}

TEST(Inspect, LayersThatDifferKeepTheirOwnLines) {
  std::vector<StoredTensor> tensors;
  for (int layer : {0, 1, 2, 5, 10})
    tensors.push_back({"l." + std::to_string(layer) + ".w", layer == 2 ? "Q6_K" : "Q4_K", {4, 4}, 8});
  for (int layer : {0, 1})
    for (int expert : {0, 1, 2})
      tensors.push_back({"l." + std::to_string(layer) + ".e." + std::to_string(expert) + ".w", "f32", {2}, 8});
  tensors.push_back({"head.*.x", "f32", {2}, 8});  // a star that is part of the name
  std::vector<std::string> names;
  for (const TensorGroup& group : group_layers(tensors)) names.push_back(fmt::format("{} {}", group.count, group.name));
  EXPECT_THAT(names, testing::ElementsAre("4 l.{0..1,5,10}.w", "1 l.2.w", "6 l.{0..1}.e.{0..2}.w", "1 head.*.x"));
}

TEST(Inspect, LayersComeInTheirOrder) {
  TemporaryFolder folder;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int layer : {0, 1, 2, 10, 11}) tensors.emplace_back(fmt::format("l.{}.w", layer), ones({layer + 1}));
  save_safetensors(folder / "x.safetensors", tensors);
  std::vector<std::string> names;
  for (const StoredTensor& t : read_contents(folder / "x.safetensors").tensors) names.push_back(t.name);
  EXPECT_THAT(names, testing::ElementsAre("l.0.w", "l.1.w", "l.2.w", "l.10.w", "l.11.w"));
}

TEST(Inspect, SummaryCountsWhatIsNotFinite) {
  ValueSummary s = summarize(from_values<float>({1.0f, 3.0f, NAN, INFINITY}, {4}));
  EXPECT_EQ(s.low, 1);
  EXPECT_EQ(s.high, 3);
  EXPECT_EQ(s.mean, 2);
  EXPECT_EQ(s.deviation, 1);
  EXPECT_EQ(s.not_finite, 2);
  ValueSummary nothing = summarize(from_values<float>({NAN}, {1}));
  EXPECT_TRUE(std::isnan(nothing.low) && std::isnan(nothing.mean));
  EXPECT_EQ(nothing.not_finite, 1);
  EXPECT_EQ(summarize(zeros({0})).not_finite, 0);
}

TEST(Inspect, HostileNamesCannotMoveTheCursor) {
  TemporaryFolder folder;
  save_safetensors(folder / "x.safetensors", {{"a\x1b[2Jb", ones({1})}}, {{"k\r", "v\x1b"}});
  Result result = inspect({(folder / "x.safetensors").string()});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.out, Not(HasSubstr("\r")));
}

TEST(Inspect, SaysWhatItCannotRead) {
  TemporaryFolder folder;
  Result empty = inspect({folder.path().string()});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("holds none of model.safetensors"));
  Result other = inspect({folder.write("x.txt", "hello").string()});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("expected a .safetensors or .gguf file or a model folder"));
  Result damaged = inspect({folder.write("x.safetensors", "short").string()});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("x.safetensors"));
  EXPECT_THAT(damaged.err, HasSubstr("hint: the file is damaged"));
  EXPECT_EQ(inspect({folder.write("y.bin", "GGUF").string()}).code, 1);  // by its first bytes, whatever its name
  EXPECT_EQ(inspect({"/no/such"}).code, 2);
}

}  // namespace
}  // namespace strata::apps
