#include "data/text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace strata::text {

namespace {
constexpr int64_t kMaxHole = 1 << 20;  // ids that may be missing in all: a lying id must not allocate gigabytes

uint32_t hash_of(std::string_view text) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(text));
}
}  // namespace

size_t Vocabulary::slot(uint32_t hash, std::string_view text) const {
  size_t i = hash & (slots_.size() - 1);
  while (slots_[i].id >= 0 && !(slots_[i].hash == hash && this->text(slots_[i].id) == text))
    i = (i + 1) & (slots_.size() - 1);
  return i;
}

void Vocabulary::rehash(size_t capacity) {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(capacity));
  for (const Slot& s : old)
    if (s.id >= 0) slots_[slot(s.hash, text(s.id))] = s;
}

void Vocabulary::reserve(size_t tokens) {
  if (size_t wanted = std::bit_ceil(2 * tokens); wanted > slots_.size()) rehash(wanted);
}

void Vocabulary::add(TokenId id, std::string_view text, const Place& place) {
  if (id < 0 || id > static_cast<int64_t>(count_) + kMaxHole)
    place.fail("id must be in [0, number of tokens + {}], got {} with {} tokens before it", kMaxHole, id, count_);
  if (has(id)) place.fail("id {} is already '{}', got also '{}'", id, shown(this->text(id)), shown(text));
  if (2 * (count_ + 1) > slots_.size()) rehash(2 * slots_.size());
  uint32_t hash = hash_of(text);
  Slot& free = slots_[slot(hash, text)];
  if (free.id >= 0) place.fail("token '{}' stands twice, as id {} and {}", shown(text), free.id, id);
  if (id >= end()) {
    texts_.resize(static_cast<size_t>(id) + 1);
    used_.resize(static_cast<size_t>(id) + 1);
  }
  texts_[static_cast<size_t>(id)] = text;
  used_[static_cast<size_t>(id)] = true;
  free = {hash, id};
  ++count_;
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  TokenId id = slots_[slot(hash_of(text), text)].id;
  return id < 0 ? std::nullopt : std::optional(id);
}

}  // namespace strata::text
