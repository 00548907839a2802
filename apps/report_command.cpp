// strata report: what one or more run folders logged, as one page - also of a run that still goes on or crashed.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "apps/commands.h"
#include "apps/common/human.h"
#include "apps/common/report.h"
#include "apps/common/run_folder.h"
#include "tensor/error.h"

namespace strata::apps {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<fs::path> runs;
  fs::path out;
};

struct Run {
  std::string name;  // the folder's name, or its path where two names are equal
  Json json;
  std::vector<Json> metrics;
};

std::vector<Run> read_runs(const std::vector<fs::path>& folders) {
  std::vector<Run> runs;
  std::map<std::string, int> names;
  for (const fs::path& folder : folders) ++names[fs::weakly_canonical(folder).filename().string()];
  for (const fs::path& folder : folders) {
    check<UsageError>(fs::is_regular_file(folder / "run.json"), "report: {} is no run folder (it has no run.json)",
                      folder.string());
    std::string name = fs::weakly_canonical(folder).filename().string();
    bool logged = fs::is_regular_file(folder / "metrics.jsonl");
    runs.push_back({names[name] > 1 ? folder.string() : name, Json::parse_file(folder / "run.json"),
                    logged ? read_metrics(folder) : std::vector<Json>()});
  }
  return runs;
}

// Names of the metrics that are numbers, in the order they first appear.
std::vector<std::string> metric_names(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  std::set<std::string> seen{"step"};
  for (const Run& run : runs)
    for (const Json& line : run.metrics)
      for (const auto& [key, value] : line.members())
        if (value.is_number() && seen.insert(key).second) names.push_back(key);
  return names;
}

// A number, or NaN for the null that a value which is not finite was logged as.
Series series_of(const Run& run, const std::string& metric, const std::string& name) {
  Series series{name, {}, {}};
  for (const Json& line : run.metrics) {
    const Json* value = line.find(metric);
    if (!value || !(value->is_number() || value->is_null())) continue;
    series.x.push_back(line.at("step").as_double());
    series.y.push_back(value->is_number() ? value->as_double() : std::nan(""));
  }
  return series;
}

Unit unit_of(const std::string& metric) {
  if (metric.find("bytes") != std::string::npos || metric.starts_with("memory")) return Unit::bytes;
  return metric.find("seconds") != std::string::npos ? Unit::seconds : Unit::number;
}

void add_curves(Report& report, const std::vector<Run>& runs) {
  report.section("Curves");
  for (const std::string& metric : metric_names(runs)) {
    Chart chart{.title = metric, .unit = unit_of(metric), .smooth = metric != "lr" && metric != "learning_rate"};
    for (const Run& run : runs)
      if (Series series = series_of(run, metric, run.name); !series.x.empty())
        chart.series.push_back(std::move(series));
    report.chart(chart);
  }
}

// {"memory": {"parameter": 5.4e8, ...}} of every line that has it, stacked.
void add_memory(Report& report, const Run& run) {
  std::vector<const Json*> lines;
  std::vector<std::string> kinds;
  for (const Json& line : run.metrics) {
    const Json* memory = line.find("memory");
    if (!memory || !memory->is_object()) continue;
    lines.push_back(&line);
    for (const auto& [kind, bytes] : memory->members())
      if (bytes.is_number() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  if (kinds.empty()) return;
  Chart chart{.title = "Memory of " + run.name, .unit = Unit::bytes, .stacked = true, .wide = true};
  for (const std::string& kind : kinds) {
    Series series{kind, {}, {}};
    for (const Json* line : lines) {
      const Json* bytes = line->at("memory").find(kind);
      series.x.push_back(line->at("step").as_double());
      series.y.push_back(bytes && bytes->is_number() ? bytes->as_double() : 0);
    }
    chart.series.push_back(std::move(series));
  }
  report.chart(chart);
}

std::string short_text(const Json& value) {
  if (value.is_string()) return value.as_string();
  return value.kind() == Json::Kind::real ? human_number(value.as_double()) : value.is_null() ? "-" : value.dump();
}

// Flags whose values differ between the runs.
std::vector<std::string> differing_flags(const std::vector<Run>& runs) {
  std::vector<std::string> flags;
  for (const Run& run : runs)
    for (const auto& [flag, value] : run.json.at("config").members()) {
      auto differs = [&, name = flag, first = value](const Run& other) {
        const Json* found = other.json.at("config").find(name);
        return !found || !(*found == first);
      };
      bool known = flag == "out" || flag == "resume" || std::find(flags.begin(), flags.end(), flag) != flags.end();
      if (!known && std::any_of(runs.begin(), runs.end(), differs)) flags.push_back(flag);
    }
  return flags;
}

// One row per run: status, steps, the flags that differ, and the last value of every metric.
void add_overview(Report& report, const std::vector<Run>& runs) {
  std::vector<std::string> flags = differing_flags(runs), metrics = metric_names(runs);
  std::vector<std::string> headers{"run", "status", "last step"};
  for (const std::string& flag : flags) headers.push_back("--" + flag);
  for (const std::string& metric : metrics) headers.push_back("last " + metric);
  std::vector<std::vector<std::string>> rows;
  for (const Run& run : runs) {
    std::vector<std::string> row{run.name, run.json.get<std::string>("status"),
                                 run.metrics.empty() ? "-" : run.metrics.back().at("step").dump()};
    for (const std::string& flag : flags) {
      const Json* value = run.json.at("config").find(flag);
      row.push_back(value ? short_text(*value) : "-");
    }
    for (const std::string& metric : metrics) {
      Series series = series_of(run, metric, "");
      row.push_back(series.y.empty() ? "-" : human_number(series.y.back()));
    }
    rows.push_back(std::move(row));
  }
  report.table(headers, rows, runs.size() > 1 ? "Flags are shown where they differ." : "");
}

void write_report(const Options& options, const Invocation&) {
  std::vector<Run> runs = read_runs(options.runs);
  bool one = runs.size() == 1;
  Report report(one ? runs[0].name : fmt::format("{} runs compared", runs.size()),
                one ? runs[0].json.get<std::string>("command") : "");
  report.text(
      "Drawn from what the runs logged (metrics.jsonl): every number that was written at a step is a curve below. Loss "
      "should fall; where it falls on training data only, the model memorises.");
  add_overview(report, runs);
  if (metric_names(runs).empty()) report.callout("Nothing was logged yet.");
  add_curves(report, runs);
  for (const Run& run : runs) add_memory(report, run);
  if (one) add_run_details(report, runs[0].json);
  fs::path out = !options.out.empty() ? options.out : one ? options.runs[0] / "curves.html" : fs::path("compare.html");
  report.write(out);
  fmt::print("{}\n", out.string());
}

}  // namespace

Command report_command() {
  return make_command<Options>(
      {.name = "report",
       .description = "draw what one or more runs logged, side by side, also while they run",
       .examples =
           "{command} runs/2026-01-31-142530-finetune-lora-3f9a\n{command} runs/*-finetune-lora-* --out lora.html"},
      [](Flags& flags, Options& o) {
        flags.positional("RUN", o.runs, "run folder").required().existing();
        flags.add("--out", o.out, "the page to write").default_text("RUN/curves.html; compare.html for several runs");
      },
      write_report);
}

}  // namespace strata::apps
