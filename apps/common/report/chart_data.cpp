#include "apps/common/report/chart_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "apps/common/human.h"
#include "tensor/error.h"

namespace strata::apps {

namespace {

constexpr size_t kMostPoints = 4000;  // of one curve; a screen has fewer columns

// Keeps the lowest and the highest point of each stretch, so that no spike is lost.
Series thinned(const Series& series) {
  const size_t points = series.x.size(), stretches = kMostPoints / 2;
  Series out{series.name, {}, {}};
  for (size_t s = 0; s < stretches; ++s) {
    size_t begin = points * s / stretches, end = points * (s + 1) / stretches;
    size_t low = begin, high = begin;
    for (size_t i = begin; i < end; ++i) {
      // Written so that the first finite value replaces one that is not.
      if (!(series.y[i] >= series.y[low]) && std::isfinite(series.y[i])) low = i;
      if (!(series.y[i] <= series.y[high]) && std::isfinite(series.y[i])) high = i;
    }
    for (size_t i : {std::min(low, high), std::max(low, high)}) {
      if (!out.x.empty() && out.x.back() == series.x[i]) continue;
      out.x.push_back(series.x[i]);
      out.y.push_back(series.y[i]);
    }
  }
  return out;
}

// Six digits are more than a chart can show and keep the page small.
Json numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (double v : values) {
    double rounded = std::isfinite(v) ? std::strtod(fmt::format("{:.6g}", v).c_str(), nullptr) : v;
    bool whole = rounded == std::floor(rounded) && std::abs(rounded) < 1e15;
    out.push(whole ? Json(static_cast<long>(rounded)) : Json(rounded));  // NaN becomes null
  }
  return out;
}

void check_series(const Chart& chart) {
  for (const Series& s : chart.series) {
    check(s.x.size() == s.y.size(), "report chart: series '{}' needs as many x as y, got {} and {}", s.name, s.x.size(),
          s.y.size());
    check(std::is_sorted(s.x.begin(), s.x.end()), "report chart: x of series '{}' must ascend", s.name);
    check(!chart.stacked || s.x == chart.series[0].x, "report chart: stacked series '{}' needs the x of the first",
          s.name);
  }
}

}  // namespace

std::string script_json(const Json& json) {
  std::string out;
  for (char c : valid_utf8(json.dump())) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));  // these stand only inside strings
    else
      out += c;
  }
  return out;
}

ChartData chart_data(const Chart& chart) {
  static constexpr std::array kUnits{"number", "count", "bytes", "percent", "seconds"};
  check_series(chart);
  ChartData data{"", {}, true};
  Json list = Json::array();
  size_t missing = 0;
  bool thin = false;
  for (const Series& series : chart.series) {
    auto finite =
        static_cast<size_t>(std::count_if(series.y.begin(), series.y.end(), [](double y) { return std::isfinite(y); }));
    missing += series.y.size() - finite;
    data.empty = data.empty && finite == 0;
    bool too_many = series.x.size() > kMostPoints && !chart.stacked;
    thin = thin || too_many;
    const Series& shown = too_many ? thinned(series) : series;
    list.push(Json::object().set("name", series.name).set("x", numbers(shown.x)).set("y", numbers(shown.y)));
  }
  if (missing > 0) data.remarks.push_back(fmt::format("{} values are not finite and leave gaps.", missing));
  if (thin) data.remarks.push_back("Long curves show the lowest and highest point of each stretch.");
  data.json = script_json(Json::object()
                              .set("x", chart.x_label)
                              .set("unit", kUnits[static_cast<size_t>(chart.unit)])
                              .set("log", chart.log_y)
                              .set("smooth", chart.smooth)
                              .set("stacked", chart.stacked)
                              .set("series", list));
  return data;
}

std::string unit_text(Unit unit, double value) {
  switch (unit) {
    case Unit::bytes: return value >= 0 ? human_bytes(static_cast<uint64_t>(value)) : "n/a";
    case Unit::percent: return fmt::format("{:.1f} %", 100 * value);
    case Unit::seconds: return human_duration(value);
    case Unit::count: return human_count(value);
    case Unit::number: break;
  }
  return human_number(value);
}

}  // namespace strata::apps
