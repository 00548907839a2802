#include "apps/common/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "apps/common/human.h"

namespace strata::apps {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A progress display that writes into a pipe, with a clock and a terminal width the test sets.
class ProgressTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override { close(ends_[0]); }

  ProgressOptions options(std::optional<int> columns) {
    ProgressOptions o{.title = "train", .total = 200};
    o.descriptor = ends_[1];
    o.columns = [columns] { return columns; };
    o.clock = [this] { return time_; };
    return o;
  }
  std::string written() {
    close(ends_[1]);
    std::string text(1 << 16, '\0');
    ssize_t n = read(ends_[0], text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    return text;
  }

  int ends_[2] = {};
  double time_ = 100;
};

TEST_F(ProgressTest, PlainLinesWhereThereIsNoTerminal) {
  Progress progress(options(std::nullopt));
  for (int step = 1; step <= 100; ++step) {
    time_ += 0.25;
    progress.update(step, {{"loss", human_number(2.5 / step)}});
  }
  progress.finish();
  EXPECT_EQ(written(),
            "train  1/200 (0 %)  loss 2.5  4 step/s  left 49.8 s\n"
            "train  41/200 (20 %)  loss 0.06098  4 step/s  left 39.8 s\n"
            "train  81/200 (40 %)  loss 0.03086  4 step/s  left 29.8 s\n"
            "train  100/200 (50 %)  loss 0.025  4 step/s  took 25.0 s\n");
}

TEST_F(ProgressTest, AResumedRunDoesNotCountEarlierSteps) {
  ProgressOptions o = options(std::nullopt);
  o.start = 150;
  Progress progress(o);
  time_ += 10;
  progress.update(160);
  EXPECT_DOUBLE_EQ(progress.rate(), 1);
  EXPECT_EQ(written(), "train  160/200 (80 %)  1 step/s  left 40.0 s\n");
}

TEST_F(ProgressTest, SlowStepsReadAsSecondsPerStep) {
  Progress progress(options(std::nullopt));
  time_ += 40;
  progress.update(1);
  EXPECT_THAT(written(), HasSubstr("  40.0 s per step  left 2 h 12 min\n"));
}

TEST_F(ProgressTest, BarFitsTheTerminalAndIsDrawnTenTimesASecond) {
  Progress progress(options(60));
  for (int step = 1; step <= 100; ++step) {
    time_ += 0.01;
    progress.update(step, {{"loss", "2.5"}, {"中文", "é"}});
  }
  std::string text = written();
  size_t draws = 0;
  for (size_t at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 1)) {
    size_t end = text.find("\x1b[K", at);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(display_width(text.substr(at + 1, end - at - 1)), 59);
    ++draws;
  }
  EXPECT_GE(draws, 9u);
  EXPECT_LE(draws, 11u);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

TEST_F(ProgressTest, NarrowTerminalsLoseTheBarNotTheCount) {
  Progress progress(options(24));
  progress.update(100);
  EXPECT_EQ(written(), "\rtrain   50 %  100/200\x1b[K");
}

TEST_F(ProgressTest, BarGrowsInEighths) {
  Progress progress(options(80));
  progress.update(41);
  // 41/200 of 30 cells = 6.15 cells = 49 eighths.
  EXPECT_EQ(written(), "\rtrain  ██████▏·······················   20 %  41/200\x1b[K");
}

TEST_F(ProgressTest, LinesArePrintedAboveTheBar) {
  Progress progress(options(80));
  progress.update(200);
  progress.print("warning: \x1b[31m3 records are too long");
  progress.finish();
  std::string bar = "train  ██████████████████████████████  100 %  200/200";
  EXPECT_EQ(written(), "\r" + bar + "\x1b[K" + "\r\x1b[Kwarning: \uFFFD[31m3 records are too long\n" + bar + "\r" +
                           bar + "  took 0 s\x1b[K\n");
}

TEST_F(ProgressTest, AnErrorRemovesTheBar) {
  {
    Progress progress(options(80));
    progress.update(1);
  }
  EXPECT_THAT(written(), testing::EndsWith("\x1b[K\r\x1b[K"));  // the next line starts in the first column
}

TEST_F(ProgressTest, UnknownTotalShowsNoBar) {
  ProgressOptions o = options(80);
  o.total = 0;
  Progress progress(o);
  progress.update(7);
  EXPECT_EQ(written(), "\rtrain  7\x1b[K");
}

TEST_F(ProgressTest, NobodyReadingIsNoReasonToStop) {
  Progress progress(options(std::nullopt));
  signal(SIGPIPE, SIG_IGN);
  close(ends_[0]);
  progress.update(1);
  progress.finish();
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(pipe(ends_), 0);
  close(ends_[1]);
}

}  // namespace
}  // namespace strata::apps
