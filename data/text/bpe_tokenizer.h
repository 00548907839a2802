// The one Tokenizer there is: normaliser, pre-tokeniser, BPE and decoder, put together from a tokenizer.json or from
// GGUF metadata.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/added_tokens.h"
#include "data/text/bpe.h"
#include "data/text/decoder.h"
#include "data/text/normalize.h"
#include "data/text/pretokenize.h"
#include "data/text/tokenizer.h"
#include "data/text/vocabulary.h"

namespace strata::text {

/// What the files say, read and checked.
struct TokenizerParts {
  std::string file;  // for errors
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::vector<Merge> merges;
  BpeOptions bpe;
  std::vector<bool> in_model;  // by id: the token belongs to the BPE model, not only to the added tokens
  Decoder decoder;
  std::vector<TokenId> prefix, suffix;  // what add_special puts around a text
  std::optional<TokenId> bos, eos, pad, unk;
  std::string chat_template;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(TokenizerParts parts);

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  std::string token_bytes(TokenId id, bool starts_text) const override;
  bool has_token(TokenId id) const override { return vocabulary().has(id); }
  const std::string& token_text(TokenId id) const override;
  std::optional<TokenId> token_id(std::string_view token_text) const override { return vocabulary().find(token_text); }
  bool is_special(TokenId id) const override { return vocabulary().has(id) && special_[static_cast<size_t>(id)]; }

  int64_t vocab_size() const override { return vocabulary().end(); }
  std::optional<TokenId> bos() const override { return parts_.bos; }
  std::optional<TokenId> eos() const override { return parts_.eos; }
  std::optional<TokenId> pad() const override { return parts_.pad; }
  std::optional<TokenId> unk() const override { return parts_.unk; }
  bool adds_bos() const override;
  const std::string& chat_template() const override { return parts_.chat_template; }

 private:
  /// Added tokens found in the text as it came, and in the normalised text; without and with the special ones.
  struct Finders {
    TokenFinder raw, normalized;
  };
  struct Work;  // one encode() call

  const Vocabulary& vocabulary() const { return *parts_.vocabulary; }
  std::vector<bool> plain() const;
  void encode_raw(std::string_view text, bool starts_text, Work& work) const;
  void encode_normalized(std::string_view text, bool starts_text, Work& work) const;
  void encode_words(std::string text, bool starts_text, Work& work) const;

  TokenizerParts parts_;
  std::vector<bool> special_, added_;  // by id
  std::unique_ptr<const Bpe> bpe_;
  Finders without_special_, with_special_;
  std::string bytes_;                // of all tokens in mid-text, one after the other
  std::vector<size_t> bytes_begin_;  // id -> where; one more at the end
};

}  // namespace strata::text
