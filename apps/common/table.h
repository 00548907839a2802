// A plain-text table for the terminal: columns aligned by display width, numbers to the right.
//
//   kind        current      peak
//   parameter   540 MiB   540 MiB
//   gradient    4.2 MiB   4.2 MiB
#pragma once

#include <string>
#include <vector>

namespace strata::apps {

class Table {
 public:
  explicit Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}

  /// Adds a row. Throws Error if it does not have one cell per header.
  Table& row(std::vector<std::string> cells);
  /// Adds a rule over the whole width, e.g. before a row of totals.
  Table& rule();
  bool empty() const { return rows_.empty(); }

  /// The text, one line per row, no trailing spaces. A column is aligned to the right if all its cells look like
  /// numbers. The widest column of text is cut so that a line fits `columns` (0: no limit).
  std::string text(int columns = 0) const;

 private:
  bool is_numeric(size_t column) const;
  std::vector<int> widths(int columns) const;

  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace strata::apps
