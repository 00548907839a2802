// The "decoder" of a tokenizer.json, as far as it can be said token by token: which bytes a token adds to the text,
// in the middle of it and at its start. A text is the tokens' bytes one after the other, so that streaming a text and
// decoding it whole cannot differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/text/place.h"

namespace strata::text {

class Decoder {
 public:
  /// A token on its way to bytes.
  struct Token {
    std::string text;
    bool added;  // an added token: it was found in the text literally, so byte-level spelling does not apply
    bool first;  // the text begins with it
  };
  using Step = std::function<void(Token&)>;

  /// ByteLevel, ByteFallback, Replace, Strip, Fuse, Metaspace, Sequence; null joins with blanks. Any other type, and
  /// anything that needs two tokens at once, is a FormatError.
  static Decoder from_json(const Json& json, const Place& place);
  static Decoder byte_level();
  /// SentencePiece's: U+2581 is a blank, <0x..> a byte; with `strip` one blank goes from the front of the text.
  static Decoder sentencepiece(bool strip);

  std::string bytes(std::string_view token, bool added, bool first) const;

 private:
  void read(const Json& json, const Place& place);
  void read_strip(const Json& json, const Place& place);
  std::vector<Step> steps_;
  bool fused_ = false;
};

}  // namespace strata::text
