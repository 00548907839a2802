// Token ids and their spellings, both ways. Ids may have holes (cl100k_base has), spellings are unique.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/place.h"

namespace strata::text {

using TokenId = int32_t;

class Vocabulary {
 public:
  /// FormatError if the id or the spelling is taken, or if the id lies absurdly far beyond the others.
  void add(TokenId id, std::string_view text, const Place& place);
  void reserve(size_t tokens) { ids_.reserve(tokens); }

  std::optional<TokenId> find(std::string_view text) const;
  bool has(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < used_.size() && used_[static_cast<size_t>(id)];
  }
  const std::string& text(TokenId id) const { return texts_[static_cast<size_t>(id)]; }  // of an id it has
  TokenId end() const { return static_cast<TokenId>(texts_.size()); }                    // highest id + 1
  size_t count() const { return ids_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque keeps the strings where the views of ids_ point
  std::vector<bool> used_;
  std::unordered_map<std::string_view, TokenId> ids_;
};

}  // namespace strata::text
