#include "apps/common/table.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "apps/common/human.h"
#include "tensor/error.h"

namespace strata::apps {

namespace {
constexpr int kGap = 2;
constexpr int kNarrowest = 8;  // a column of text is not cut below this

void append_cell(std::string& line, const std::string& cell, int width, bool right) {
  std::string shown = fit_columns(cell, width);
  std::string padding(static_cast<size_t>(width - display_width(shown)), ' ');
  line += right ? padding + shown : shown + padding;
}
}  // namespace

Table& Table::row(std::vector<std::string> cells) {
  check(cells.size() == headers_.size(), "table: a row needs {} cells, got {}", headers_.size(), cells.size());
  rows_.push_back(std::move(cells));
  return *this;
}

Table& Table::rule() {
  rows_.emplace_back();
  return *this;
}

bool Table::is_numeric(size_t column) const {
  return std::all_of(rows_.begin(), rows_.end(),
                     [&](const auto& cells) { return cells.empty() || looks_like_number(cells[column]); });
}

std::vector<int> Table::widths(int columns) const {
  std::vector<int> width;
  for (size_t c = 0; c < headers_.size(); ++c) {
    width.push_back(display_width(headers_[c]));
    for (const auto& cells : rows_)
      if (!cells.empty()) width[c] = std::max(width[c], display_width(cells[c]));
  }
  int total = std::accumulate(width.begin(), width.end(), 0) + kGap * static_cast<int>(width.size() - 1);
  while (columns > 0 && total > columns) {
    auto widest = width.end();
    for (size_t c = 0; c < width.size(); ++c)
      if (!is_numeric(c) && (widest == width.end() || width[c] > *widest))
        widest = width.begin() + static_cast<long>(c);
    if (widest == width.end() || *widest <= kNarrowest) break;
    int cut = std::min(total - columns, *widest - kNarrowest);
    *widest -= cut;
    total -= cut;
  }
  return width;
}

std::string Table::text(int columns) const {
  if (headers_.empty()) return "";
  const std::vector<int> width = widths(columns);
  std::string out;
  auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      append_cell(line, cells[c], width[c], is_numeric(c));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  add_line(headers_);
  for (const auto& cells : rows_) {
    if (!cells.empty()) {
      add_line(cells);
      continue;
    }
    int total = std::accumulate(width.begin(), width.end(), 0) + kGap * static_cast<int>(width.size() - 1);
    for (int i = 0; i < total; ++i) out += "─";
    out += '\n';
  }
  return out;
}

}  // namespace strata::apps
