// Token ids and their spellings, both ways. Ids may have holes (cl100k_base has), spellings are unique.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/place.h"

namespace strata::text {

using TokenId = int32_t;

class Vocabulary {
 public:
  /// FormatError if the id or the spelling is taken, or if the id lies absurdly far beyond the others.
  void add(TokenId id, std::string_view text, const Place& place);
  void reserve(size_t tokens);

  std::optional<TokenId> find(std::string_view text) const;
  bool has(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < used_.size() && used_[static_cast<size_t>(id)];
  }
  const std::string& text(TokenId id) const { return texts_[static_cast<size_t>(id)]; }  // of an id it has
  TokenId end() const { return static_cast<TokenId>(texts_.size()); }                    // highest id + 1
  size_t count() const { return count_; }

 private:
  // Open addressing: loading a tokenizer looks up half a million spellings, and each miss in the cache counts.
  struct Slot {
    uint32_t hash = 0;
    TokenId id = -1;
  };
  size_t slot(uint32_t hash, std::string_view text) const;
  void rehash(size_t capacity);

  std::deque<std::string> texts_;
  std::vector<bool> used_;
  std::vector<Slot> slots_ = std::vector<Slot>(16);
  size_t count_ = 0;
};

}  // namespace strata::text
