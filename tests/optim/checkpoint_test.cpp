#include "optim/training/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tensor/create.h"

namespace strata::optim {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("strata-checkpoint-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

std::vector<nn::NamedTensor> tensors(double value) {
  return {{"a", full({1000}, value)}, {"b", full({3, 5}, -value)}};
}
Json state(int64_t step) {
  return Json::object().set("seen", step * 10);
}

TEST(Checkpoint, ComesBackWhole) {
  Folder f;
  EXPECT_FALSE(load_newest_checkpoint(f.path));
  for (int64_t step = 1; step <= 4; ++step)
    save_checkpoint(f.path, step, tensors(static_cast<double>(step)), state(step));
  auto c = load_newest_checkpoint(f.path);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->step, 4);
  EXPECT_EQ(c->state.get<int64_t>("seen"), 40);
  EXPECT_EQ(to_vector<float>(c->tensors[0].tensor)[999], 4);
  EXPECT_EQ(to_vector<float>(c->tensors[1].tensor)[14], -4);
  int64_t kept = std::distance(fs::directory_iterator(f.path), fs::directory_iterator());
  EXPECT_EQ(kept, 2);
}

TEST(Checkpoint, TheSameStepAgainReplacesIt) {
  Folder f;
  save_checkpoint(f.path, 7, tensors(1), state(1));
  save_checkpoint(f.path, 7, tensors(2), state(2));
  EXPECT_EQ(load_newest_checkpoint(f.path)->state.get<int64_t>("seen"), 20);
  EXPECT_EQ(std::distance(fs::directory_iterator(f.path), fs::directory_iterator()), 1);
}

TEST(Checkpoint, ADamagedOneIsSkippedAndNamed) {
  Folder f;
  save_checkpoint(f.path, 1, tensors(1), state(1));
  save_checkpoint(f.path, 2, tensors(2), state(2));
  {
    std::fstream file(f.path / "step-00000002" / "tensors.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x55');  // one changed byte
  }
  auto c = load_newest_checkpoint(f.path);
  EXPECT_EQ(c->step, 1);
  ASSERT_EQ(c->skipped.size(), 1u);
  EXPECT_THAT(c->skipped[0], HasSubstr("step-00000002"));
  EXPECT_THAT(c->skipped[0], HasSubstr("checksum differs"));
  fs::resize_file(f.path / "step-00000001" / "tensors.safetensors", 100);
  EXPECT_THROW(load_newest_checkpoint(f.path), Error);
}

TEST(Checkpoint, AFullDiskLeavesTheEarlierOne) {
  Folder f;
  save_checkpoint(f.path, 1, tensors(1), state(1));
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{2000, before.rlim_max};  // the write of 4 KB fails as on a full disk
  setrlimit(RLIMIT_FSIZE, &small);
  std::string error;
  try {
    save_checkpoint(f.path, 2, tensors(2), state(2));
  } catch (const Error& e) {
    error = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(error, HasSubstr("bytes"));
  EXPECT_EQ(load_newest_checkpoint(f.path)->step, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(f.path), fs::directory_iterator()), 1) << "nothing temporary is left";
}

TEST(Checkpoint, AHundredKillsLoseNothing) {
  Folder f;
  save_checkpoint(f.path, 1, tensors(1), state(1));
  int64_t newest = 1;
  for (int round = 0; round < 100; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int64_t step = newest + 1;; ++step) {
        try {
          save_checkpoint(f.path, step, tensors(static_cast<double>(step)), state(step));
        } catch (...) {
          _exit(1);
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 1370 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    remove_temporary_checkpoints(f.path);
    auto c = load_newest_checkpoint(f.path);
    ASSERT_TRUE(c);
    ASSERT_TRUE(c->skipped.empty()) << c->skipped[0];
    ASSERT_GE(c->step, newest);
    ASSERT_EQ(c->state.get<int64_t>("seen"), c->step * 10);
    ASSERT_EQ(to_vector<float>(c->tensors[0].tensor)[0], static_cast<float>(c->step));
    newest = c->step;
  }
  EXPECT_GT(newest, 1) << "no save ever finished between two kills";
}

}  // namespace
}  // namespace strata::optim
