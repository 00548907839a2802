// report.html: one self-contained file that shows what a run did, opened from disk. Nothing is loaded from anywhere;
// charts are drawn by the embedded uPlot. Every text given here is shown as text, whatever it holds (model output may
// well hold markup).
//
//   Report report("LoRA fine-tune of SmolLM2-135M", "instruction-data.json, 935 records, 1 epoch");
//   report.highlights({{"validation loss", "1.432", "was 2.871", Tone::good}});
//   report.section("Learning").text("...").chart({.title = "Loss", .x_label = "step", .series = {...}});
//   report.write(run.report());
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/io/json.h"

namespace strata::apps {

enum class Tone { neutral, good, warning, bad };

/// One figure of the row at the top: {"validation loss", "1.432", "was 2.871", Tone::good}.
struct Highlight {
  std::string label, value, note = {};
  Tone tone = Tone::neutral;
};

/// How values are written on an axis and in a legend.
enum class Unit { number, count, bytes, percent, seconds };  // percent: 0.25 is 25 %

struct Series {
  std::string name;
  std::vector<double> x, y;  // equal lengths, x ascending; a y that is not finite leaves a gap
};

struct Chart {
  std::string title;
  std::string note = {};  // one sentence for a reader who does not know what to look for
  std::string x_label = "step";
  std::string y_label = {};
  Unit unit = Unit::number;
  std::vector<Series> series = {};
  bool log_y = false;    // starts logarithmic; the reader can switch where all values are positive
  bool smooth = false;   // noisy curves: starts with a moving average over the faint original
  bool stacked = false;  // areas on top of each other (memory by kind); all series share the x of the first
  bool wide = false;     // the whole width of the page
};

/// One bar made of parts, e.g. {"predicted", {{"parameters", 540e6}, {"activations", 210e6}}}.
struct Bar {
  std::string label;
  std::vector<std::pair<std::string, double>> parts;
};

/// An answer and what somebody or something thinks of it.
struct Answer {
  std::string text;
  std::string verdict = {};  // "correct", "hallucination", ...
  Tone tone = Tone::neutral;
};

struct Comparison {
  std::string prompt;
  std::string expected;  // may be empty
  Answer base, tuned;
};

/// A stretch of a training record: counted in the loss or masked.
struct RecordPart {
  std::string text;
  bool counted;
};

class Report {
 public:
  explicit Report(std::string title, std::string subtitle = {});

  Report& highlights(const std::vector<Highlight>& figures);
  /// A heading; also an entry of the table of contents.
  Report& section(const std::string& title);
  /// Paragraphs, separated by blank lines.
  Report& text(std::string_view paragraphs);
  /// A box that must not be overlooked.
  Report& callout(const std::string& text, Tone tone = Tone::warning);
  /// Text whose spaces and lines matter: a command line, a log.
  Report& code(std::string_view text);
  Report& key_values(const std::vector<std::pair<std::string, std::string>>& pairs);
  /// Columns of numbers are aligned to the right; the reader can sort. Throws Error if a row's length differs.
  Report& table(const std::vector<std::string>& headers, const std::vector<std::vector<std::string>>& rows,
                const std::string& caption = {});
  Report& chart(const Chart& chart);
  /// Horizontal bars on one scale, with a legend of the parts.
  Report& bars(const std::string& title, Unit unit, const std::vector<Bar>& bars, const std::string& note = {});
  /// Answers of the base and the tuned model side by side.
  Report& comparison(const std::vector<Comparison>& comparisons);
  /// counts[actual][predicted].
  Report& confusion(const std::vector<std::string>& labels, const std::vector<std::vector<int64_t>>& counts);
  /// One training record with the part that is learnt marked.
  Report& record(const std::vector<RecordPart>& parts);

  std::string html() const;
  /// Written atomically. Throws Error.
  void write(const std::filesystem::path& path) const;

 private:
  Report& add(std::string html);  // a block that is no chart
  void close_charts();

  std::string title_, subtitle_, body_;
  std::vector<std::string> sections_;
  bool in_charts_ = false;  // consecutive charts share a grid
  int charts_ = 0;
};

/// "How to repeat this": command line, status, times, seed, build and machine from the content of run.json.
void add_run_details(Report& report, const Json& run);

/// The text as HTML: markup characters escaped, control characters and invalid UTF-8 replaced.
std::string escape_html(std::string_view text);

}  // namespace strata::apps
