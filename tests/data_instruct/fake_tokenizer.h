// A tokenizer small enough to see through: greedy longest match over a word list, single bytes for the rest.
// Ids 0-255 are bytes, then the words, then the special tokens. With space_first it puts a space before every text and
// takes one away when decoding, as SentencePiece vocabularies do.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "tensor/error.h"

namespace strata::data {

struct FakeVocabulary {
  std::vector<std::string> words;
  std::vector<std::string> specials;
  std::string bos, eos, pad;
  bool adds_bos = false;
  bool space_first = false;
  std::vector<std::string> strip_right;  // specials that swallow the white space after them ("rstrip")
  std::string chat_template;
};

class FakeTokenizer : public text::Tokenizer {
 public:
  using Id = text::TokenId;
  explicit FakeTokenizer(FakeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
    for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
    texts_.insert(texts_.end(), vocabulary_.words.begin(), vocabulary_.words.end());
    first_special_ = texts_.size();
    texts_.insert(texts_.end(), vocabulary_.specials.begin(), vocabulary_.specials.end());
  }

  std::vector<Id> encode(std::string_view text, const text::EncodeOptions& options) const override {
    std::vector<Id> ids;
    if (options.add_special && vocabulary_.adds_bos) ids.push_back(*bos());
    size_t begin = 0;
    for (size_t at = 0; options.parse_special && at < text.size();) {
      size_t id = longest(text.substr(at), first_special_, texts_.size());
      if (id == texts_.size()) {
        ++at;
        continue;
      }
      encode_text(text.substr(begin, at - begin), ids);
      ids.push_back(static_cast<Id>(id));
      at += texts_[id].size();
      const auto& strip = vocabulary_.strip_right;
      if (std::find(strip.begin(), strip.end(), texts_[id]) != strip.end())
        at = std::min(text.find_first_not_of(" \n\t", at), text.size());
      begin = at;
    }
    encode_text(text.substr(begin), ids);
    return ids;
  }
  std::string decode(std::span<const Id> ids, bool skip_special) const override {
    std::string text;
    for (Id id : ids)
      if (!skip_special || !is_special(id)) text += token_text(id);
    if (vocabulary_.space_first && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }
  std::string token_bytes(Id id, bool starts_text) const override {
    return starts_text ? decode({&id, 1}, false) : token_text(id);
  }
  bool has_token(Id id) const override { return id >= 0 && id < vocab_size(); }
  const std::string& token_text(Id id) const override {
    check<FormatError>(id >= 0 && id < vocab_size(), "token id must be below {}, got {}", vocab_size(), id);
    return texts_[static_cast<size_t>(id)];
  }
  std::optional<Id> token_id(std::string_view text) const override {
    auto found = std::find(texts_.begin(), texts_.end(), text);
    if (found == texts_.end()) return std::nullopt;
    return static_cast<Id>(found - texts_.begin());
  }
  bool is_special(Id id) const override { return static_cast<size_t>(id) >= first_special_; }
  int64_t vocab_size() const override { return static_cast<int64_t>(texts_.size()); }
  std::optional<Id> bos() const override { return token_id(vocabulary_.bos); }
  std::optional<Id> eos() const override { return token_id(vocabulary_.eos); }
  std::optional<Id> pad() const override { return token_id(vocabulary_.pad); }
  std::optional<Id> unk() const override { return std::nullopt; }
  bool adds_bos() const override { return vocabulary_.adds_bos; }
  const std::string& chat_template() const override { return vocabulary_.chat_template; }

 private:
  size_t longest(std::string_view text, size_t from, size_t to) const {
    size_t best = to;
    for (size_t id = from; id < to; ++id)
      if (text.starts_with(texts_[id]) && (best == to || texts_[id].size() > texts_[best].size())) best = id;
    return best;
  }
  void encode_text(std::string_view part, std::vector<Id>& ids) const {
    if (part.empty()) return;
    std::string text = (vocabulary_.space_first ? " " : "") + std::string(part);
    for (size_t at = 0; at < text.size();) {
      size_t id = longest(std::string_view(text).substr(at), 0, first_special_);
      ids.push_back(static_cast<Id>(id));
      at += texts_[id].size();
    }
  }

  FakeVocabulary vocabulary_;
  std::vector<std::string> texts_;
  size_t first_special_ = 0;
};

inline std::shared_ptr<const text::Tokenizer> fake_tokenizer(FakeVocabulary vocabulary) {
  return std::make_shared<FakeTokenizer>(std::move(vocabulary));
}

/// A vocabulary in which words merge across seams ("world", ":The", "\n\n").
inline FakeVocabulary chatml_vocabulary() {
  return {.words = {"user", "assistant", "system", "Hello", " world", " wor", "ld", "\n\n", ":The", "The"},
          .specials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
          .bos = {},
          .eos = "<|im_end|>",
          .pad = "<|im_end|>",
          .strip_right = {},
          .chat_template = {}};
}

}  // namespace strata::data
