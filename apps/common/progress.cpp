#include "apps/common/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "apps/common/human.h"
#include "apps/common/terminal.h"

namespace strata::apps {

namespace {
constexpr double kRedrawEvery = 0.1;  // seconds
constexpr double kRateMemory = 20;    // seconds after which a measurement counts 1/e
constexpr int kWidestBar = 30;
constexpr int kNarrowestBar = 5;
constexpr const char* kClearLine = "\r\x1b[K";

// A bar of `cells` characters in eighths: ███▌····
std::string bar(double fraction, int cells) {
  static constexpr std::array kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int eighths = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * cells * 8));
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  int used = eighths / 8;
  if (eighths % 8 != 0) {
    out += kEighths[static_cast<size_t>(eighths % 8)];
    ++used;
  }
  for (int i = used; i < cells; ++i) out += "·";
  return out;
}
}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)), done_(options_.start) {
  measured_done_ = done_;
  started_ = measured_at_ = shown_at_ = now();
}

Progress::~Progress() {
  if (!finished_ && bar_there_) write_all(kClearLine);
}

double Progress::now() const {
  if (options_.clock) return options_.clock();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<int> Progress::columns() const {
  return options_.columns ? options_.columns() : terminal_columns(options_.descriptor);
}

// An exponential moving average in time, exact for steps of equal length and blind to how often update is called.
void Progress::measure(double time, int64_t done) {
  double elapsed = time - measured_at_;
  if (elapsed < kRedrawEvery || done <= measured_done_) return;
  double latest = static_cast<double>(done - measured_done_) / elapsed;
  double weight = 1 - std::exp(-elapsed / kRateMemory);
  double age = 1 - std::exp(-(time - started_) / kRateMemory);  // weights so far add up to this
  rate_ += (latest - rate_) * weight / age;
  measured_at_ = time;
  measured_done_ = done;
}

void Progress::update(int64_t done, ProgressColumns columns) {
  done_ = done;
  columns_ = std::move(columns);
  double time = now();
  measure(time, done);
  bool terminal = this->columns().has_value();
  double pause = terminal ? kRedrawEvery : options_.seconds_between_lines;
  if (shown_ && time - shown_at_ < pause) return;
  shown_at_ = time;
  draw();
}

void Progress::draw() {
  shown_ = true;
  std::optional<int> width = columns();
  if (!width) {
    write_all(plain_line() + '\n');
    return;
  }
  // The last column stays free: writing there makes some terminals wrap. One write, so that nothing flickers.
  write_all("\r" + bar_line(*width - 1) + "\x1b[K");
  bar_there_ = true;
}

void Progress::print(const std::string& line) {
  std::string text = printable(line, "\n\t") + '\n';
  if (!bar_there_) return write_all(text);
  std::optional<int> width = columns();
  write_all(kClearLine + text + (width ? bar_line(*width - 1) : ""));
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  measure(now(), done_);
  draw();
  if (bar_there_) write_all("\n");
}

std::string Progress::tail() const {
  std::string out;
  for (const auto& [name, value] : columns_) out += fmt::format("  {} {}", printable(name), printable(value));
  if (rate_ > 0) {
    out += rate_ >= 1 ? fmt::format("  {} {}/s", rate_ < 1000 ? human_number(rate_) : human_count(rate_), options_.unit)
                      : fmt::format("  {} per {}", human_duration(1 / rate_), options_.unit);
  }
  if (finished_)
    out += "  took " + human_duration(now() - started_);
  else if (rate_ > 0 && options_.total > done_)
    out += "  left " + human_duration(static_cast<double>(options_.total - done_) / rate_);
  return out;
}

std::string Progress::plain_line() const {
  std::string out = options_.title + "  ";
  if (options_.total > 0)
    out += fmt::format("{}/{} ({} %)", done_, options_.total, done_ * 100 / options_.total);
  else
    out += fmt::format("{}", done_);
  return out + tail();
}

std::string Progress::bar_line(int width) const {
  if (options_.total <= 0) return fit_columns(plain_line(), width);
  double fraction = static_cast<double>(done_) / static_cast<double>(options_.total);
  std::string right = fmt::format("  {:3.0f} %  {}/{}{}", std::floor(std::clamp(fraction, 0.0, 1.0) * 100), done_,
                                  options_.total, tail());
  int room = width - display_width(options_.title) - 2 - display_width(right);
  if (room < kNarrowestBar) return fit_columns(options_.title + right, width);
  return options_.title + "  " + bar(fraction, std::min(room, kWidestBar)) + right;
}

void Progress::write_all(const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    ssize_t n = write(options_.descriptor, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads stderr: that is no reason to stop the work
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace strata::apps
