// The "pre_tokenizer" of a tokenizer.json: cuts a text into the pieces that BPE merges within.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/text/place.h"

namespace strata::text {

struct Piece {
  size_t begin, end;  // bytes of Pieces::text, never empty
  bool starts_text;   // begins where the whole text begins (Metaspace's prepend_scheme "first" asks)
};

struct Pieces {
  std::string text;  // valid UTF-8
  std::vector<Piece> list;

  std::string_view view(const Piece& p) const { return std::string_view(text).substr(p.begin, p.end - p.begin); }
};

class PreTokenizer {
 public:
  using Step = std::function<void(Pieces&)>;

  /// null gives no steps: the text is one piece. Sequence, Split, ByteLevel, Digits, Metaspace, Whitespace,
  /// WhitespaceSplit, Punctuation, CharDelimiterSplit, BertPreTokenizer; any other type is a FormatError.
  static PreTokenizer from_json(const Json& json, const Place& place);
  /// ByteLevel after Split{Regex, Isolated} for each pattern in turn (what a GGUF file's pre name stands for); with
  /// `prefix` a blank is put before a section that does not begin with one.
  static PreTokenizer byte_level(const std::vector<std::string>& patterns, bool prefix, const Place& place);
  /// SentencePiece's: blanks become U+2581, and with `prefix` one is put before every section of a text.
  static PreTokenizer sentencepiece(bool prefix);

  /// Cuts the pieces further, before every U+2581 that follows another character.
  static void cut_before_blanks(Pieces& pieces);

  /// Cuts `text` (valid UTF-8; a section of the whole text, `starts_text` if it is the first).
  Pieces apply(std::string text, bool starts_text) const;

 private:
  void read(const Json& json, const Place& place);
  std::vector<Step> steps_;
};

}  // namespace strata::text
