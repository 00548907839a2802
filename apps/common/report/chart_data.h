// A chart as the JSON that report.js draws, small enough for a page and unable to end its <script> element.
#pragma once

#include <string>
#include <vector>

#include "apps/common/report.h"

namespace strata::apps {

/// Number of --series-N colours in report.css.
constexpr int kColours = 8;

struct ChartData {
  std::string json;                  // {"series": [{"name", "x", "y"}], "unit", "log", ...}
  std::vector<std::string> remarks;  // what a reader must know: gaps, thinned points
  bool empty;                        // no finite point at all
};

/// Throws Error if the x and y of a series differ in length, or the x of stacked series differ.
ChartData chart_data(const Chart& chart);

/// The JSON with every character escaped that HTML or JavaScript could take for markup.
std::string script_json(const Json& json);

/// "540 MiB", "25.0 %", ... as report.js writes it.
std::string unit_text(Unit unit, double value);

}  // namespace strata::apps
