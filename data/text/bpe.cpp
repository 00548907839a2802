#include "data/text/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "data/text/unicode.h"

namespace strata::text {

namespace {
constexpr char32_t kLow = 0x400;
constexpr char32_t kBlank = 0x2581;
constexpr std::string_view kBlankText = "\xE2\x96\x81";
constexpr size_t kShort = 48;  // symbols up to which scanning beats the heap

uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
}  // namespace

Bpe::Table::Table(size_t pairs)
    : slots_(std::bit_ceil(std::max<size_t>(2 * pairs, 16))), shift_(64 - std::countr_zero(slots_.size())) {}

size_t Bpe::Table::slot(uint64_t key) const {
  size_t i = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  while (slots_[i].key != kFree && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
  return i;
}

void Bpe::Table::set(TokenId left, TokenId right, Joined joined) {
  uint64_t key = pair_key(left, right);
  slots_[slot(key)] = {key, joined};
}

Bpe::Joined Bpe::Table::find(TokenId left, TokenId right) const {
  return slots_[slot(pair_key(left, right))].joined;
}

Bpe::Bpe(std::shared_ptr<const Vocabulary> vocabulary, std::span<const Merge> merges, const BpeOptions& options,
         std::vector<bool> plain)
    : vocabulary_(std::move(vocabulary)), options_(options), plain_(std::move(plain)), table_(merges.size()) {
  for (const Merge& m : merges)
    if (allowed(m.result)) table_.set(m.left, m.right, {m.rank, m.result});
  find_characters();
  cuts_before_blank_ = can_cut_before_blank();
}

bool Bpe::can_cut_before_blank() const {
  if (options_.ignore_merges || character(kBlank) < 0) return false;
  // A character that vanishes would bring together what we cut.
  if (!options_.unk && std::find(bytes_.begin(), bytes_.end(), -1) != bytes_.end()) return false;
  for (TokenId id = 0; id < vocabulary_->end(); ++id) {
    if (!vocabulary_->has(id) || !allowed(id)) continue;
    std::string_view text = vocabulary_->text(id), mark = kBlankText;
    for (size_t i = 0; (i = text.find(mark, i)) != std::string_view::npos; i += mark.size())
      if (i > 0 && !text.substr(0, i).ends_with(mark)) return false;
  }
  return true;
}

void Bpe::find_characters() {
  low_.assign(kLow, -1);
  for (TokenId id = 0; id < vocabulary_->end(); ++id) {
    if (!vocabulary_->has(id) || !allowed(id)) continue;
    std::string_view text = vocabulary_->text(id);
    if (text.empty() || text.size() > 4) continue;
    Utf8Step step = utf8_step(text, 0);
    if (step.kind != Utf8::valid || step.length != text.size()) continue;
    if (step.code < kLow)
      low_[step.code] = id;
    else
      high_[step.code] = id;
  }
  bytes_.assign(256, -1);
  for (int b = 0; options_.byte_fallback && b < 256; ++b)
    if (auto id = vocabulary_->find(fmt::format("<0x{:02X}>", b))) bytes_[static_cast<size_t>(b)] = *id;
}

TokenId Bpe::character(char32_t code) const {
  if (code < kLow) return low_[code];
  auto it = high_.find(code);
  return it == high_.end() ? -1 : it->second;
}

void Bpe::characters(std::string_view piece, std::vector<TokenId>& ids) const {
  bool after_unk = false;
  for_each_char(piece, [&](char32_t code, size_t begin, size_t end) {
    TokenId id = character(code);
    if (id >= 0) {
      ids.push_back(id);
      after_unk = false;
      return;
    }
    if (options_.byte_fallback) {
      size_t start = ids.size();
      bool all = true;
      for (char c : piece.substr(begin, end - begin)) {
        ids.push_back(bytes_[static_cast<unsigned char>(c)]);
        all = all && ids.back() >= 0;
      }
      if (all) {
        after_unk = false;
        return;
      }
      ids.resize(start);
    }
    if (options_.unk && !(after_unk && options_.fuse_unk)) ids.push_back(*options_.unk);
    after_unk = true;
  });
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& out, Scratch& scratch) const {
  if (options_.ignore_merges)
    if (auto whole = vocabulary_->find(piece); whole && allowed(*whole)) {
      out.push_back(*whole);
      return;
    }
  scratch.ids.clear();
  characters(piece, scratch.ids);
  if (scratch.ids.size() <= kShort)
    merge_short(scratch);
  else
    merge_long(scratch);
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
}

// ranks[i]: of the pair (i, i + 1), with the result in the low half. The smallest, leftmost one is joined in place.
void Bpe::merge_short(Scratch& s) const {
  constexpr uint64_t kNone = UINT64_MAX;
  auto rank = [&](size_t i) {
    Joined j = table_.find(s.ids[i], s.ids[i + 1]);
    return j.rank == kNoRank ? kNone : static_cast<uint64_t>(j.rank) << 32 | static_cast<uint32_t>(j.result);
  };
  if (s.ids.size() < 2) return;
  s.ranks.resize(s.ids.size() - 1);
  for (size_t i = 0; i < s.ranks.size(); ++i) s.ranks[i] = rank(i);
  while (!s.ranks.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < s.ranks.size(); ++i)
      if (s.ranks[i] >> 32 < s.ranks[best] >> 32) best = i;
    if (s.ranks[best] == kNone) return;
    s.ids[best] = static_cast<TokenId>(s.ranks[best] & 0xFFFFFFFFu);
    s.ids.erase(s.ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    s.ranks.erase(s.ranks.begin() + static_cast<std::ptrdiff_t>(best));
    if (best < s.ranks.size()) s.ranks[best] = rank(best);
    if (best > 0) s.ranks[best - 1] = rank(best - 1);
  }
}

// A doubly linked list over positions; a symbol that was joined into its left neighbour has id -1. Entries of the heap
// go stale when a neighbour changes: they are recognised by looking the pair up again.
void Bpe::merge_long(Scratch& s) const {
  struct Entry {
    uint32_t rank;
    int32_t at;
    TokenId result;
    bool operator>(const Entry& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  auto n = static_cast<int32_t>(s.ids.size());
  auto id = [&](int32_t i) -> TokenId& { return s.ids[static_cast<size_t>(i)]; };
  s.before.resize(s.ids.size());
  s.after.resize(s.ids.size());
  std::vector<Entry> entries;
  entries.reserve(s.ids.size());
  for (int32_t i = 0; i < n; ++i) {
    s.before[static_cast<size_t>(i)] = i - 1;
    s.after[static_cast<size_t>(i)] = i + 1 < n ? i + 1 : -1;
    if (i + 1 == n) continue;
    Joined j = table_.find(id(i), id(i + 1));
    if (j.rank != kNoRank) entries.push_back({j.rank, i, j.result});
  }
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap(std::greater<>(), std::move(entries));
  auto offer = [&](int32_t left, int32_t right) {
    Joined j = table_.find(id(left), id(right));
    if (j.rank != kNoRank) heap.push({j.rank, left, j.result});
  };
  while (!heap.empty()) {
    Entry top = heap.top();
    heap.pop();
    int32_t right = s.after[static_cast<size_t>(top.at)];
    if (id(top.at) < 0 || right < 0) continue;
    Joined now = table_.find(id(top.at), id(right));
    if (now.rank != top.rank || now.result != top.result) continue;
    int32_t next = s.after[static_cast<size_t>(right)];
    id(top.at) = top.result;
    id(right) = -1;
    s.after[static_cast<size_t>(top.at)] = next;
    if (next >= 0) s.before[static_cast<size_t>(next)] = top.at;
    if (next >= 0) offer(top.at, next);
    if (int32_t left = s.before[static_cast<size_t>(top.at)]; left >= 0) offer(left, top.at);
  }
  std::erase(s.ids, -1);
}

}  // namespace strata::text
