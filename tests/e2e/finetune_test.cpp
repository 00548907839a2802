#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "apps/common/run_folder.h"
#include "optim/training/checkpoint.h"
#include "tensor/create.h"
#include "tensor/io/safetensors.h"
#include "tests/e2e/program.h"

namespace strata {
namespace {

using namespace strata::test;  // NOLINT
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A short, lively run: dropout, shuffling, accumulation that does not divide the epoch, two epochs.
std::string recipe(const std::string& out) {
  return "finetune lora --threads 1 --model " + stories() + " --data " + instructions() +
         " --batch 3 --accumulation 2 --dropout 0.3 --rank 4 --max-length 200 --too-long skip --max-steps 9 --warmup "
         "0.2"
         " --eval-every 4 --save-every 2 --answers 1 --answer-tokens 8 --train-share 0.02 --validation-share 0.01"
         " --test-share 0.97 --epochs 4 --out " +
         out;
}

// What the run computed: losses, rates, norms and validation by step, without times.
std::string numbers(const std::string& folder) {
  std::string text;
  for (const Json& line : apps::read_metrics(folder)) {
    text += line.at("step").dump();
    for (const char* key : {"loss", "lr", "grad_norm", "counted_tokens", "validation_loss"})
      if (const Json* v = line.find(key)) text += std::string(" ") + key + " " + v->dump();
    text += "\n";
  }
  return text;
}

std::string adapter_bytes(const std::string& folder) {
  return read_file(fs::path(folder) / "adapter/adapter_model.safetensors");
}

TEST(Finetune, LeavesAdapterMetricsReportAndSaysWhatItWillDo) {
  Scratch s;
  Outcome o = strata(recipe(s / "run"));
  ASSERT_EQ(o.exit_code, 0) << o.output;
  for (const char* part : {"trainable", "q_proj", "counted in the loss", "one record as the model sees it", "⟦",
                           "9 optimizer steps", "validation loss", "full fine-tuning would need"})
    EXPECT_THAT(o.output, HasSubstr(part));
  EXPECT_THAT(o.output, Not(HasSubstr("nan")));
  for (const char* file :
       {"run.json", "metrics.jsonl", "report.html", "adapter/adapter_config.json", "adapter/adapter_model.safetensors"})
    EXPECT_TRUE(fs::exists(s.path / "run" / file)) << file;
  EXPECT_THAT(read_file(s.path / "run/report.html"), HasSubstr("Answers before and after"));
  Outcome again = strata("evaluate --threads 1 --model " + stories() + " --adapter " + (s / "run/adapter") +
                         " --data " + instructions());
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("base"), HasSubstr("tuned")));
  Outcome inspected = strata("inspect " + (s / "run/adapter"));
  EXPECT_THAT(inspected.output, HasSubstr("rank 4"));
  Outcome chat = run("printf 'Hello\\n/base\\nHello\\n/exit\\n' | " + std::string(STRATA_PROGRAM) +
                     " chat --threads 1 -n 8 --model " + stories() + " --adapter " + (s / "run/adapter"));
  EXPECT_EQ(chat.exit_code, 0) << chat.output;
  EXPECT_THAT(chat.output, HasSubstr("adapter off"));
}

TEST(Finetune, TheSameSeedGivesTheSameBits) {
  Scratch s;
  ASSERT_EQ(strata(recipe(s / "a")).exit_code, 0);
  ASSERT_EQ(strata(recipe(s / "b")).exit_code, 0);
  ASSERT_EQ(strata(recipe(s / "c") + " --seed 7").exit_code, 0);
  EXPECT_EQ(numbers(s / "a"), numbers(s / "b"));
  EXPECT_EQ(adapter_bytes(s / "a"), adapter_bytes(s / "b"));
  EXPECT_NE(adapter_bytes(s / "a"), adapter_bytes(s / "c"));
}

// Starts a run and kills it once its metrics show `step`.
void run_until(const std::string& arguments, const fs::path& folder, int step, int signal_number) {
  pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    std::string command = "exec " + std::string(STRATA_PROGRAM) + " " + arguments;
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  std::string mark = "{\"step\": " + std::to_string(step) + ",";
  for (int i = 0; i < 6000; ++i) {
    if (read_file(folder / "metrics.jsonl").find(mark) != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, signal_number);
  int status = 0;
  waitpid(child, &status, 0);
}

TEST(Finetune, KilledAtAnyStepAndResumedEqualsTheUninterruptedRun) {
  Scratch s;
  ASSERT_EQ(strata(recipe(s / "whole")).exit_code, 0);
  for (int step : {1, 2, 3, 5, 7, 8}) {
    std::string folder = s / ("killed" + std::to_string(step));
    run_until(recipe(folder), folder, step, SIGKILL);
    Outcome o = strata("finetune resume " + folder);
    ASSERT_EQ(o.exit_code, 0) << step << o.output;
    EXPECT_THAT(o.output, HasSubstr("resuming after step"));
    EXPECT_EQ(numbers(folder), numbers(s / "whole")) << step;
    EXPECT_EQ(adapter_bytes(folder), adapter_bytes(s / "whole")) << step;
  }
}

TEST(Finetune, CtrlCSavesAndResumeGoesOn) {
  Scratch s;
  ASSERT_EQ(strata(recipe(s / "whole")).exit_code, 0);
  std::string folder = s / "stopped";
  run_until(recipe(folder), folder, 3, SIGINT);
  EXPECT_THAT(read_file(fs::path(folder) / "run.json"), HasSubstr("\"interrupted\""));
  ASSERT_EQ(strata("finetune resume " + folder).exit_code, 0);
  EXPECT_EQ(adapter_bytes(folder), adapter_bytes(s / "whole"));
}

TEST(Finetune, FlagsThatContradictTheCheckpointAreRefused) {
  Scratch s;
  std::string folder = s / "run";
  run_until(recipe(folder), folder, 3, SIGKILL);
  Outcome o = strata(recipe(folder) + " --resume --rank 8");
  EXPECT_EQ(o.exit_code, 2) << o.output;
  EXPECT_THAT(o.output, HasSubstr("these differ from the checkpoint: adapters"));
  o = strata(recipe(folder));
  EXPECT_EQ(o.exit_code, 2) << o.output;  // the folder is not empty
  o = strata(recipe(s / "none") + " --resume");
  EXPECT_EQ(o.exit_code, 2) << o.output;
  EXPECT_THAT(o.output, HasSubstr("holds no checkpoint"));
}

TEST(Finetune, ADamagedNewestCheckpointFallsBackToTheOneBefore) {
  Scratch s;
  ASSERT_EQ(strata(recipe(s / "whole")).exit_code, 0);
  std::string folder = s / "run";
  run_until(recipe(folder), folder, 7, SIGKILL);
  fs::path newest;
  for (const auto& e : fs::directory_iterator(fs::path(folder) / "checkpoints"))
    if (e.path().extension() != ".tmp" && (newest.empty() || e.path() > newest)) newest = e.path();
  fs::resize_file(newest / "tensors.safetensors", 50);
  Outcome o = strata("finetune resume " + folder);
  EXPECT_EQ(o.exit_code, 0) << o.output;
  EXPECT_THAT(o.output, HasSubstr("skipped a damaged checkpoint"));
  EXPECT_EQ(adapter_bytes(folder), adapter_bytes(s / "whole"));
}

TEST(Finetune, GoesOnTrainingAnAdapterThatSaysInferenceMode) {
  Scratch s;
  ASSERT_EQ(strata(recipe(s / "first")).exit_code, 0);
  EXPECT_THAT(read_file(s / "first/adapter/adapter_config.json"), HasSubstr("\"inference_mode\": true"));
  Outcome o = strata(recipe(s / "second") + " --init-adapter " + (s / "first/adapter"));
  ASSERT_EQ(o.exit_code, 0) << o.output;
  auto first = apps::read_metrics(s / "first"), second = apps::read_metrics(s / "second");
  EXPECT_DOUBLE_EQ(second.front().get<double>("validation_loss"), first.back().get<double>("validation_loss"));
  SafetensorsFile before = SafetensorsFile::open(s.path / "first/adapter/adapter_model.safetensors");
  SafetensorsFile after = SafetensorsFile::open(s.path / "second/adapter/adapter_model.safetensors");
  for (const TensorInfo& t : before.tensors())
    EXPECT_NE(to_vector<float>(before.tensor(t.name)), to_vector<float>(after.tensor(t.name))) << t.name;
}

TEST(Finetune, ACheckpointWithoutOptimizerStateIsRefusedWithAWayOut) {
  Scratch s;
  std::string folder = s / "run";
  run_until(recipe(folder), folder, 3, SIGKILL);
  optim::remove_temporary_checkpoints(fs::path(folder) / "checkpoints");
  auto newest = optim::load_newest_checkpoint(fs::path(folder) / "checkpoints");
  ASSERT_TRUE(newest && newest->step > 0);
  std::vector<nn::NamedTensor> weights;
  for (const auto& t : newest->tensors)
    if (t.name.starts_with("model.")) weights.push_back({t.name, clone_data(t.tensor)});
  optim::save_checkpoint(fs::path(folder) / "checkpoints", newest->step, weights, newest->state);
  Outcome o = strata("finetune resume " + folder);
  EXPECT_EQ(o.exit_code, 1) << o.output;
  EXPECT_THAT(o.output, AllOf(HasSubstr("no optimizer state"), HasSubstr("--init-adapter")));
}

TEST(Finetune, BadDataIsNamedAndRefused) {
  Scratch s;
  auto with_data = [&](const std::string& text, const std::string& more = "") {
    write_file(s / "d.json", text);
    fs::remove_all(s / "run");
    return strata("finetune lora --threads 1 --answers 0 --max-steps 1 --model " + stories() + " --data " +
                  (s / "d.json") + " --out " + (s / "run") + " " + more);
  };
  auto expect = [&](const Outcome& o, int code, const std::string& part) {
    EXPECT_EQ(o.exit_code, code) << o.output;
    EXPECT_THAT(o.output, HasSubstr(part));
    EXPECT_THAT(o.output, HasSubstr("error:"));
  };
  expect(with_data(""), 1, "d.json");
  expect(with_data("[]"), 1, "d.json");
  expect(with_data("[{\"instruction\": \"a\""), 1, "not valid JSON");
  expect(with_data(R"([{"instruction": "a", "input": "", "output": 3}])"), 1, "output");
  expect(with_data(R"([{"instruction": "a", "input": ""}])"), 1, "output");
  std::string long_record = R"({"instruction": ")" + std::string(3000, 'x') + R"(", "output": "y"})";
  expect(with_data("[" + long_record + "," + long_record + "," + long_record + "]",
                   "--train-share 1 --validation-share 0 --test-share 0"),
         1, "record");
  Outcome error =
      with_data("[" + long_record + "]", "--too-long error --train-share 1 --validation-share 0 --test-share 0");
  EXPECT_EQ(error.exit_code, 1) << error.output;
}

TEST(Finetune, WrongUsageIsExitCodeTwoWithTheFlagNamed) {
  Scratch s;
  std::string base = "finetune lora --model " + stories() + " --data " + instructions() + " --out " + (s / "run");
  for (const auto& [flag, part] :
       std::vector<std::pair<std::string, std::string>>{{"--rank 0", "--rank"},
                                                        {"--lr -1", "--lr"},
                                                        {"--accumulation 0", "--accumulation"},
                                                        {"--accumulation -2", "--accumulation"},
                                                        {"--targets q_proj,FAKE", "FAKE"},
                                                        {"--schedule cosin", "--schedule"},
                                                        {"--frobnicate", "frobnicate"},
                                                        {"--template chatml", "chatml"},
                                                        {"--device cuda", "cuda"},
                                                        {"--train-share 0.5", "add up to 1"},
                                                        {"--dropout 1", "--dropout"}}) {
    Outcome o = strata(base + " " + flag);
    EXPECT_EQ(o.exit_code, 2) << flag << "\n" << o.output;
    EXPECT_THAT(o.output, HasSubstr(part)) << flag;
  }
  EXPECT_EQ(strata("finetune lora").exit_code, 2);
  EXPECT_EQ(strata("nonsense").exit_code, 2);
  EXPECT_EQ(strata("finetune lora --model /nowhere --data " + instructions()).exit_code, 2);
}

TEST(Finetune, NaNInAWeightStopsTheRunAndNamesTheModule) {
  Scratch s;
  fs::path model = s.path / "model";
  fs::create_directories(model);
  for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    fs::copy(fs::path(stories()) / file, model / file);
  SafetensorsFile original = SafetensorsFile::open(stories());
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const TensorInfo& info : original.tensors()) {
    Tensor t = clone_data(original.tensor(info.name));
    if (info.name == "model.layers.2.mlp.up_proj.weight") t.mutable_data<float>()[77] = std::nanf("");
    tensors.emplace_back(info.name, t);
  }
  save_safetensors(model / "model.safetensors", tensors);
  Outcome o = strata("finetune lora --threads 1 --answers 0 --validation-share 0 --train-share 0.9 --model " +
                     model.string() + " --data " + instructions() + " --out " + (s / "run"));
  EXPECT_EQ(o.exit_code, 1) << o.output;
  EXPECT_THAT(o.output, HasSubstr("model.layers.2"));
  EXPECT_THAT(read_file(s / "run/run.json"), HasSubstr("\"failed\""));
  EXPECT_TRUE(fs::exists(s.path / "run/checkpoints/step-00000000"));
}

TEST(Finetune, AFullDiskAtCheckpointTimeIsAnErrorAndTheEarlierCheckpointStays) {
  Scratch s;
  // Checkpoints are the only large files of this run: limit file size below theirs after the first was written.
  std::string folder = s / "run";
  run_until(recipe(folder), folder, 3, SIGKILL);
  Outcome o = run("trap '' XFSZ; ulimit -f 100; exec " + std::string(STRATA_PROGRAM) + " finetune resume " + folder);
  EXPECT_EQ(o.exit_code, 1) << o.output;
  EXPECT_THAT(o.output, HasSubstr("bytes"));
  EXPECT_EQ(strata("finetune resume " + folder).exit_code, 0);
}

}  // namespace
}  // namespace strata
