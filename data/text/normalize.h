// The "normalizer" of a tokenizer.json: what happens to a text before it is cut into pieces.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/text/place.h"

namespace strata::text {

class Normalizer {
 public:
  using Step = std::function<std::string(std::string)>;

  /// null gives no steps. Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, ByteLevel;
  /// any other type is a FormatError.
  static Normalizer from_json(const Json& json, const Place& place);
  void add(Step step) { steps_.push_back(std::move(step)); }

  bool empty() const { return steps_.empty(); }
  /// Valid UTF-8 in and out.
  std::string apply(std::string text) const;

 private:
  void read(const Json& json, const Place& place);
  std::vector<Step> steps_;
};

/// Every occurrence of `what` (not empty), left to right.
std::string replace_all(std::string_view text, std::string_view what, std::string_view with);
/// The function a {"pattern": {"String"|"Regex": ...}, "content": ...} step describes.
Normalizer::Step read_replace(const Json& json, const Place& place);

}  // namespace strata::text
