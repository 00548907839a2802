#include "data/text/vocabulary.h"

namespace strata::text {

namespace {
constexpr int64_t kMaxHole = 1 << 20;  // ids that may be missing in all: a lying id must not allocate gigabytes
}

void Vocabulary::add(TokenId id, std::string_view text, const Place& place) {
  place.check(id >= 0 && id <= static_cast<int64_t>(count()) + kMaxHole,
              "id must be in [0, number of tokens + {}], got {} with {} tokens before it", kMaxHole, id, count());
  place.check(!has(id), "id {} is already '{}', got also '{}'", id,
              has(id) ? shown(texts_[static_cast<size_t>(id)]) : "", shown(text));
  if (id >= end()) {
    texts_.resize(static_cast<size_t>(id) + 1);
    used_.resize(static_cast<size_t>(id) + 1);
  }
  std::string& slot = texts_[static_cast<size_t>(id)];
  slot = text;
  auto [it, fresh] = ids_.emplace(slot, id);
  place.check(fresh, "token '{}' stands twice, as id {} and {}", shown(text), it->second, id);
  used_[static_cast<size_t>(id)] = true;
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  auto it = ids_.find(text);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace strata::text
