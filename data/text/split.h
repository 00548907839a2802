// Cutting pieces at matches, with Hugging Face's five behaviours.
#pragma once

#include <string_view>
#include <vector>

#include "data/text/place.h"
#include "data/text/pretokenize.h"
#include "data/text/unicode.h"

namespace strata::text {

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
Behavior read_behavior(const Json& json, Behavior fallback, const Place& place);

/// A stretch of a piece, matching or between two matches. All stretches together make up the piece.
struct Span {
  size_t begin, end;
  bool match;
};

/// Rearranges one piece's spans as the behaviour says; the rest is what becomes of the piece.
void arrange(std::vector<Span>& spans, Behavior behavior);

/// Every piece is cut at the matches that find(text, emit) reports by emit(begin, end), in order.
template <class Find>
void split_pieces(Pieces& pieces, Behavior behavior, bool invert, Find&& find) {
  std::vector<Piece> out;
  std::vector<Span> spans;
  out.reserve(pieces.list.size());
  for (const Piece& piece : pieces.list) {
    std::string_view text = pieces.view(piece);
    spans.clear();
    size_t done = 0;
    find(text, [&](size_t begin, size_t end) {
      if (done < begin) spans.push_back({done, begin, invert});
      spans.push_back({begin, end, !invert});
      done = end;
    });
    if (done < text.size()) spans.push_back({done, text.size(), invert});
    arrange(spans, behavior);
    for (const Span& s : spans)
      if (s.begin < s.end)
        out.push_back({piece.begin + s.begin, piece.begin + s.end, piece.starts_text && s.begin == 0});
  }
  pieces.list = std::move(out);
}

/// The same with single characters as matches.
template <class Is>
void split_at_chars(Pieces& pieces, Behavior behavior, Is&& is) {
  split_pieces(pieces, behavior, false, [&](std::string_view text, auto&& emit) {
    for_each_char(text, [&](char32_t code, size_t begin, size_t end) {
      if (is(code)) emit(begin, end);
    });
  });
}

}  // namespace strata::text
