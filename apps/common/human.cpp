#include "apps/common/human.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <array>
#include <cctype>
#include <cmath>

namespace strata::apps {

std::string human_count(double count) {
  if (!std::isfinite(count)) return "n/a";
  static constexpr std::array kPrefix{"", " k", " M", " G", " T", " P", " E"};
  double size = std::abs(count);
  if (size < 1000 && size == std::floor(size)) return fmt::format("{}", static_cast<int64_t>(count));
  size_t prefix = 0;
  // 999.95 would be printed as 1000.0: such values belong to the next prefix.
  for (; size >= 999.95 && prefix + 1 < kPrefix.size(); ++prefix) size /= 1000;
  return fmt::format("{}{:.1f}{}", count < 0 ? "-" : "", size, kPrefix[prefix]);
}

std::string human_bytes(uint64_t bytes) {
  static constexpr std::array kPrefix{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes);
  size_t prefix = 0;
  for (; size >= 1023.5 && prefix + 1 < kPrefix.size(); ++prefix) size /= 1024;
  int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", size, decimals, kPrefix[prefix]);
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) return "n/a";
  if (seconds == 0) return "0 s";
  if (seconds < 0.0009995) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  int64_t minutes = whole / 60;
  if (minutes < 24 * 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  int64_t hours = minutes / 60;
  return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

std::string human_number(double value) {
  return fmt::format("{:.4g}", value);
}

bool looks_like_number(std::string_view cell) {
  if (cell.empty() || cell == "-" || cell == "n/a" || cell == "nan" || cell == "inf" || cell == "-inf") return true;
  size_t first = cell.front() == '-' || cell.front() == '+' ? 1 : 0;
  return first < cell.size() && std::isdigit(static_cast<unsigned char>(cell[first])) != 0;
}

namespace {

struct Character {
  size_t bytes;    // length in the text, at least 1
  bool valid;      // UTF-8
  bool printable;  // and no control character
  int columns;
};

Character first_character(std::string_view text) {
  utf8proc_int32_t code = 0;
  utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                        static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (n < 1) return {1, false, false, 1};
  utf8proc_category_t kind = utf8proc_category(code);
  bool control = kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP ||
                 (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);  // bidi overrides
  return {static_cast<size_t>(n), true, !control, control ? 1 : utf8proc_charwidth(code)};
}

}  // namespace

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    Character c = first_character(text);
    columns += c.columns;
    text.remove_prefix(c.bytes);
  }
  return columns;
}

std::string printable(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    Character c = first_character(text);
    bool kept = c.printable || (c.bytes == 1 && keep.find(text.front()) != std::string_view::npos);
    out += kept ? text.substr(0, c.bytes) : std::string_view("\uFFFD");
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    Character c = first_character(text);
    out += c.valid ? text.substr(0, c.bytes) : std::string_view("\uFFFD");
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string fit_columns(std::string_view text, int columns) {
  std::string shown = printable(text);
  if (display_width(shown) <= columns) return shown;
  if (columns < 1) return "";
  std::string_view rest = shown;
  int used = 0;
  size_t end = 0;
  while (!rest.empty()) {
    Character c = first_character(rest);
    if (used + c.columns > columns - 1) break;
    used += c.columns;
    end += c.bytes;
    rest.remove_prefix(c.bytes);
  }
  return shown.substr(0, end) + "…";
}

std::vector<std::string> wrap_text(std::string_view text, int columns) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    if (text.front() == '\n') {
      lines.emplace_back();
      text.remove_prefix(1);
      continue;
    }
    size_t word_start = std::min(text.find_first_not_of(' '), text.size());
    size_t word_end = std::min(text.find_first_of(" \n", word_start), text.size());
    std::string_view spaces = text.substr(0, word_start);
    std::string_view word = text.substr(word_start, word_end - word_start);
    text.remove_prefix(word_end);
    std::string& line = lines.back();
    if (line.empty() || display_width(line) + static_cast<int>(spaces.size()) + display_width(word) <= columns)
      line.append(spaces).append(word);
    else
      lines.emplace_back(word);
  }
  return lines;
}

}  // namespace strata::apps
