// Byte-pair encoding of one piece: start from characters, join the neighbouring pair of lowest rank (the leftmost of
// equals) until no pair is in the table. Short pieces scan for it, O(n^2); long ones keep a heap, O(n log n).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/vocabulary.h"

namespace strata::text {

struct Merge {
  TokenId left, right, result;
  uint32_t rank;
};

struct BpeOptions {
  std::optional<TokenId> unk;  // for characters the vocabulary lacks; without one they vanish
  bool fuse_unk = false;       // neighbouring unknown characters become one unk
  bool byte_fallback = false;  // an unknown character becomes its bytes <0x..>, if the vocabulary has them all
  bool ignore_merges = false;  // a piece that is a token as a whole is that token
};

class Bpe {
 public:
  /// `plain[id]`: the token may come out of plain text. Special tokens never do, whatever the merges say.
  Bpe(std::shared_ptr<const Vocabulary> vocabulary, std::span<const Merge> merges, const BpeOptions& options,
      std::vector<bool> plain);

  /// Memory that encode() uses again from piece to piece.
  struct Scratch {
    std::vector<TokenId> ids;
    std::vector<uint64_t> ranks;
    std::vector<int32_t> before, after;
  };
  /// Whether no token has U+2581 behind another character, so that a piece may be cut before every such mark without
  /// changing its ids. SentencePiece vocabularies are like that; it makes words of a text that has no split pattern.
  bool cuts_before_blank() const { return cuts_before_blank_; }
  /// Appends the ids of one piece (valid UTF-8).
  void encode(std::string_view piece, std::vector<TokenId>& out, Scratch& scratch) const;

 private:
  struct Joined {
    uint32_t rank = kNoRank;
    TokenId result = 0;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;

  /// Pairs of ids -> rank and result: open addressing, power-of-two capacity, at most half full.
  class Table {
   public:
    explicit Table(size_t pairs);
    void set(TokenId left, TokenId right, Joined joined);  // the last of equal pairs counts
    Joined find(TokenId left, TokenId right) const;

   private:
    struct Slot {
      uint64_t key = kFree;
      Joined joined;
    };
    static constexpr uint64_t kFree = UINT64_MAX;
    size_t slot(uint64_t key) const;
    std::vector<Slot> slots_;
    int shift_;
  };

  bool allowed(TokenId id) const { return static_cast<size_t>(id) < plain_.size() && plain_[static_cast<size_t>(id)]; }
  void find_characters();
  bool can_cut_before_blank() const;
  TokenId character(char32_t code) const;
  void characters(std::string_view piece, std::vector<TokenId>& ids) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  BpeOptions options_;
  std::vector<bool> plain_;
  Table table_;
  std::vector<TokenId> low_;                    // code point -> id below kLow, -1: none
  std::unordered_map<char32_t, TokenId> high_;  // the others
  bool cuts_before_blank_ = false;
  std::vector<TokenId> bytes_;  // byte -> id of <0x..>, -1: none
};

}  // namespace strata::text
