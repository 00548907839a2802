#include "apps/common/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>

#include "apps/common/build_info.h"
#include "apps/common/interrupt.h"
#include "tensor/error.h"
#include "tensor/io/atomic_file.h"
#include "tests/temporary_folder.h"

namespace strata::apps {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class RunFolderTest : public testing::Test {
 protected:
  std::vector<int64_t> steps(const fs::path& run) {
    std::vector<int64_t> out;
    for (const Json& line : read_metrics(run)) out.push_back(line.get<int64_t>("step"));
    return out;
  }
  std::string status(const fs::path& run) { return Json::parse_file(run / "run.json").get<std::string>("status"); }

  test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  Invocation invocation_{
      "strata finetune lora", {"strata", "finetune", "lora", "--lr", "1e-3", "\xff"}, Json::object().set("lr", 1e-3)};
};

TEST_F(RunFolderTest, WritesWhatARunIsJudgedBy) {
  RunFolder run(invocation_, {.root = folder_, .seed = 7, .libraries = Json::object().set("openblas", "0.3.21")});
  EXPECT_THAT(run.path().filename().string(), MatchesRegex("[0-9]+-[0-9]+-[0-9]+-[0-9]+-finetune-lora-[0-9a-f]+"));
  EXPECT_TRUE(fs::is_directory(run.samples()));
  EXPECT_TRUE(fs::is_directory(run.checkpoints()));
  Json json = Json::parse_file(run.path() / "run.json");
  EXPECT_EQ(json.get<std::string>("command"), "strata finetune lora");
  EXPECT_EQ(json.at("command_line").items()[4].as_string(), "1e-3");
  EXPECT_EQ(json.at("command_line").items()[5].as_string(), "\uFFFD");  // an invalid byte does not spoil the file
  EXPECT_EQ(json.at("config").get<double>("lr"), 1e-3);
  EXPECT_EQ(json.get<uint64_t>("seed"), 7u);
  EXPECT_EQ(json.get<std::string>("status"), "running");
  EXPECT_THAT(json.get<std::string>("started"), MatchesRegex("[0-9-]+T[0-9:]+[+-][0-9]+"));
  EXPECT_TRUE(json.at("ended").is_null());
  EXPECT_EQ(json.at("build").get<std::string>("compiler"), build_info().compiler);
  EXPECT_GE(json.at("machine").get<int64_t>("logical_cores"), 1);
  EXPECT_GT(json.at("machine").get<uint64_t>("memory_bytes"), 1u << 20);
  EXPECT_EQ(json.at("libraries").get<std::string>("openblas"), "0.3.21");
  run.set("gpu", "none");
  run.sample("step-1.txt", "Once upon");
  EXPECT_EQ(read_file(run.samples() / "step-1.txt"), "Once upon");
  run.finish();
  json = Json::parse_file(run.path() / "run.json");
  EXPECT_EQ(json.get<std::string>("status"), "finished");
  EXPECT_EQ(json.get<std::string>("gpu"), "none");
  EXPECT_FALSE(json.at("ended").is_null());
}

TEST_F(RunFolderTest, LogsOneLinePerStepAtOnce) {
  RunFolder run(invocation_, {.out = folder_ / "a"});
  run.log(1, Json::object().set("loss", 2.5));
  EXPECT_EQ(read_file(run.path() / "metrics.jsonl"), "{\"step\": 1, \"loss\": 2.5}\n");  // while the run goes on
  run.log(2, Json::object().set("loss", std::nan("")));
  EXPECT_EQ(read_file(run.path() / "metrics.jsonl"), "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"loss\": null}\n");
  run.finish();
}

TEST_F(RunFolderTest, RefusesAFolderInUse) {
  std::ofstream(folder_ / "thesis.txt") << "precious";
  EXPECT_THAT(error_of<Error>([&] { RunFolder run(invocation_, {.out = folder_}); }),
              HasSubstr("--out: must be a new or empty folder, got " + folder_.string()));
  EXPECT_THROW(RunFolder(invocation_, {.out = folder_ / "thesis.txt"}), UsageError);
  EXPECT_THROW(RunFolder(invocation_, {.out = folder_, .resume_after = 0}), UsageError);  // no run there
  EXPECT_FALSE(fs::exists(folder_ / "run.json"));
  RunFolder first(invocation_, {.out = folder_ / "b"});
  EXPECT_THAT(error_of<Error>([&] { RunFolder second(invocation_, {.out = folder_ / "b", .resume_after = 0}); }),
              HasSubstr("another process is writing to"));
  first.finish();
}

TEST_F(RunFolderTest, ResumeDropsLaterStepsAndAHalfLine) {
  {
    RunFolder run(invocation_, {.out = folder_ / "a"});
    for (int step = 1; step <= 5; ++step) run.log(step, Json::object().set("loss", 1.0 / step));
    run.finish(RunStatus::interrupted);
  }
  EXPECT_EQ(status(folder_ / "a"), "interrupted");
  std::ofstream(folder_ / "a" / "metrics.jsonl", std::ios::app) << "{\"step\": 6, \"lo";  // killed while writing
  EXPECT_THAT(steps(folder_ / "a"), ElementsAre(1, 2, 3, 4, 5));
  {
    RunFolder run(invocation_, {.out = folder_ / "a", .resume_after = 3});
    EXPECT_THAT(steps(folder_ / "a"), ElementsAre(1, 2, 3));
    run.log(4, Json::object().set("loss", 9.0));
    run.finish();
  }
  EXPECT_THAT(steps(folder_ / "a"), ElementsAre(1, 2, 3, 4));
  Json json = Json::parse_file(folder_ / "a" / "run.json");
  EXPECT_EQ(json.at("resumed").items().at(0).get<int64_t>("step"), 3);
  EXPECT_EQ(json.get<std::string>("status"), "finished");
}

TEST_F(RunFolderTest, MalformedMetricsNameTheLine) {
  std::ofstream(folder_ / "metrics.jsonl") << "{\"step\": 1}\n{\"loss\": 2}\n";
  EXPECT_EQ(error_of<Error>([&] { read_metrics(folder_); }),
            (folder_ / "metrics.jsonl").string() + ":2: field 'step' is missing");
}

TEST_F(RunFolderTest, AnErrorLeavesTheStatusFailed) {
  try {
    RunFolder run(invocation_, {.out = folder_ / "a"});
    fail("loss is not finite");
  } catch (const Error& e) {
    record_failure(e.what());
  }
  Json json = Json::parse_file(folder_ / "a" / "run.json");
  EXPECT_EQ(json.get<std::string>("status"), "failed");
  EXPECT_EQ(json.get<std::string>("error"), "loss is not finite");
}

// ---- atomic files -------------------------------------------------------------------------------------------------

// Runs the action in a process whose files may have at most `bytes` bytes: a full disk, as far as write() can tell.
// Returns the error's text.
std::string error_with_file_limit(rlim_t bytes, const std::function<void()>& action) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "pipe failed";
  pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string text = error_of<Error>(action);
    ssize_t n = write(pipe_ends[1], text.data(), text.size());
    _exit(n == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::string text(4096, '\0');
  ssize_t n = ::read(pipe_ends[0], text.data(), text.size());
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

TEST_F(RunFolderTest, AtomicWriteReplacesTheWholeFile) {
  fs::path file = folder_ / "x.json";
  write_file_atomically(file, "old");
  write_file_atomically(file, "new");
  EXPECT_EQ(read_file(file), "new");
  EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
}

TEST_F(RunFolderTest, AFullDiskKeepsTheEarlierFile) {
  fs::path file = folder_ / "x.bin";
  write_file_atomically(file, "old");
  std::string error = error_with_file_limit(1000, [&] { write_file_atomically(file, std::string(5000, 'x')); });
  EXPECT_THAT(error, HasSubstr(file.string() + ": needs 5000 bytes, wrote 1000: File too large"));
  EXPECT_EQ(read_file(file), "old");
  EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
}

TEST_F(RunFolderTest, AFullDiskLeavesWholeLines) {
  fs::path out = folder_ / "a";
  std::string error = error_with_file_limit(20000, [&] {
    RunFolder run(invocation_, {.out = out});
    for (int step = 1; step <= 1000; ++step) run.log(step, Json::object().set("loss", 1.5));
  });
  EXPECT_THAT(error, HasSubstr("cannot append"));
  EXPECT_THAT(error, HasSubstr((out / "metrics.jsonl").string()));
  std::string text = read_file(out / "metrics.jsonl");
  EXPECT_GT(text.size(), 19000u);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), read_metrics(out).size());
  EXPECT_EQ(status(out), "failed");
}

TEST_F(RunFolderTest, AnUnfinishedFileIsNeverSeen) {
  fs::path file = folder_ / "x.bin";
  write_file_atomically(file, "old");
  pid_t child = fork();
  if (child == 0) {
    AtomicFile out(file);
    out.write("half");
    _exit(0);  // as kill -9 would: no destructor runs
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(read_file(file), "old");
  EXPECT_TRUE(fs::exists(file.string() + ".tmp"));
  write_file_atomically(file, "new");  // the next start cleans up
  EXPECT_EQ(read_file(file), "new");
  EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
  { AtomicFile dropped(file); }
  EXPECT_EQ(read_file(file), "new");
}

TEST_F(RunFolderTest, ErrorsOfAtomicFilesNameTheFile) {
  EXPECT_EQ(error_of<Error>([&] { write_file_atomically(folder_ / "no" / "x", "a"); }),
            "write_file: " + (folder_ / "no" / "x").string() + ": cannot open: No such file or directory");
  fs::create_directories(folder_ / "taken" / "full");
  EXPECT_THAT(error_of<Error>([&] { write_file_atomically(folder_ / "taken", "a"); }), HasSubstr("cannot rename"));
  EXPECT_FALSE(fs::exists(folder_ / "taken.tmp"));
}

// ---- Ctrl-C -------------------------------------------------------------------------------------------------------

TEST(Interrupt, FirstSignalSetsTheFlag) {
  InterruptGuard guard("");
  EXPECT_FALSE(interrupted());
  std::raise(SIGINT);
  EXPECT_TRUE(interrupted());
  clear_interrupt();
  std::raise(SIGTERM);
  EXPECT_TRUE(interrupted());
  clear_interrupt();
}

TEST(Interrupt, SecondSignalEndsAtOnce) {
  auto twice = [] {
    InterruptGuard guard;
    std::raise(SIGINT);
    std::raise(SIGINT);
    _exit(0);
  };
  EXPECT_EXIT(twice(), testing::ExitedWithCode(130), "press Ctrl-C again");
}

}  // namespace
}  // namespace strata::apps
