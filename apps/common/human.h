// Numbers and text for people: "1.2 M", "540 MiB", "3 min 20 s", and the width a text takes on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::apps {

/// A count with one decimal and a decimal prefix: 950, 12.3 k, 134.5 M, 1.2 G. Not finite: "n/a".
std::string human_count(double count);
/// Bytes with three significant digits and a binary prefix: 512 B, 1.46 GiB, 540 MiB.
std::string human_bytes(uint64_t bytes);
/// Seconds: 420 ms, 12.3 s, 3 min 20 s, 2 h 05 min, 3 d 04 h. Negative or not finite: "n/a".
std::string human_duration(double seconds);
/// A measured value with four significant digits: 2.345, 0.0002, 1.2e-07. Not finite: "nan", "inf", "-inf".
std::string human_number(double value);

/// True for a cell that belongs into a column aligned to the right: a number with or without a unit, "-", "n/a",
/// nothing.
bool looks_like_number(std::string_view cell);

/// Columns that UTF-8 text takes on a terminal: combining marks 0, East Asian wide and emoji 2. Invalid bytes and
/// control characters count 1, as printable() shows them.
int display_width(std::string_view text);
/// The text with every control character and invalid byte replaced by U+FFFD, so that it can neither move the cursor
/// nor break a line; `keep` lists control characters to leave alone (e.g. "\n\t").
std::string printable(std::string_view text, std::string_view keep = "");
/// The text with every byte that is not valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
/// Printable text cut to at most `columns`, ending in "…" where something was cut. Never cuts inside a character.
std::string fit_columns(std::string_view text, int columns);
/// Lines of at most `columns`, broken at spaces; a longer word keeps a line of its own. Newlines in the text are kept.
std::vector<std::string> wrap_text(std::string_view text, int columns);

}  // namespace strata::apps
