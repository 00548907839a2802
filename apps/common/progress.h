// How far a long piece of work has come, on stderr: a bar on a terminal, a plain line now and then elsewhere.
//
//   train  ███████▌············  37 %  185/500  loss 2.31  lr 1.8e-04  3.1 step/s  left 1 min 42 s
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace strata::apps {

struct ProgressOptions {
  std::string title;                  // "train"
  std::string unit = "step";          // for the rate: "3.1 step/s"
  int64_t total = 0;                  // 0: unknown; no bar and no time left
  int64_t start = 0;                  // done before this process began (a resumed run); not counted in the rate
  double seconds_between_lines = 10;  // where there is no terminal
  // For tests; by default stderr, what it is connected to, and the steady clock.
  int descriptor = STDERR_FILENO;
  std::function<std::optional<int>()> columns = {};  // nullopt: not a terminal
  std::function<double()> clock = {};                // seconds
};

/// Text columns beside the bar: {{"loss", "2.31"}, {"lr", "1.8e-04"}}.
using ProgressColumns = std::vector<std::pair<std::string, std::string>>;

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Without finish() (an error, an interruption): removes the bar, so that the next line starts clean.
  ~Progress();

  /// Cheap: draws at most ten times a second, or a line every seconds_between_lines.
  void update(int64_t done, ProgressColumns columns = {});
  /// Prints a line above the bar.
  void print(const std::string& line);
  /// Leaves the last state as a line of its own.
  void finish();

  /// Units per second over about the last twenty seconds; 0 before two updates.
  double rate() const { return rate_; }

 private:
  double now() const;
  std::optional<int> columns() const;
  void measure(double time, int64_t done);
  std::string bar_line(int width) const;
  std::string plain_line() const;
  std::string tail() const;
  void draw();
  void write_all(const std::string& text) const;

  ProgressOptions options_;
  ProgressColumns columns_;
  int64_t done_ = 0, measured_done_ = 0;
  double started_ = 0, measured_at_ = 0, shown_at_ = 0, rate_ = 0;
  bool shown_ = false;      // a first line or bar was written
  bool bar_there_ = false;  // the terminal's last line is the bar
  bool finished_ = false;
};

}  // namespace strata::apps
