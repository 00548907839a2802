// Text <-> token ids, as the model's own tokenizer files define it (tokenizer.json or GGUF metadata).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/io/json.h"

namespace strata::text {

using TokenId = int32_t;

struct EncodeOptions {
  /// Add what the tokenizer's post-processor adds around a whole text (BOS, EOS).
  bool add_special = false;
  /// Recognise special tokens written out in the text ("<|im_end|>"). Off by default: user text that contains
  /// such a string is plain text, so that nobody can close their own turn. Added tokens that are not special
  /// are always recognised.
  bool parse_special = false;
};

/// An immutable tokenizer; safe to share between threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// From a parsed tokenizer.json (Hugging Face) and, where there is one, tokenizer_config.json (may be null).
  /// Throws FormatError for a step it does not know: an unknown pre-tokenizer is never replaced by a default.
  static std::shared_ptr<const Tokenizer> from_json(const Json& tokenizer, const Json& config = Json());
  /// From a folder (tokenizer.json[.gz] with tokenizer_config.json) or a tokenizer.json[.gz] file.
  static std::shared_ptr<const Tokenizer> from_file(const std::filesystem::path& path);
  /// From a GGUF file's metadata (an object of "tokenizer.ggml.*" keys). An unknown tokenizer.ggml.pre is an error.
  static std::shared_ptr<const Tokenizer> from_gguf(const Json& metadata);

  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  /// Bytes that are not valid UTF-8 come back as U+FFFD (one for each maximal run that could have begun a character).
  /// Spaces are never "cleaned up". Ids that no token has (rows that pad an embedding) add nothing.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special = false) const = 0;
  /// The raw bytes that one token adds (may be part of a character), in the middle of a text or as its first token,
  /// where SentencePiece-like vocabularies lose a leading space. "" if there is no such token.
  virtual std::string token_bytes(TokenId id, bool starts_text = false) const = 0;
  virtual bool has_token(TokenId id) const = 0;
  /// The token as the vocabulary spells it; FormatError if the id is out of range.
  virtual const std::string& token_text(TokenId id) const = 0;
  virtual std::optional<TokenId> token_id(std::string_view token_text) const = 0;
  virtual bool is_special(TokenId id) const = 0;

  virtual int64_t vocab_size() const = 0;  // highest id + 1, added tokens included
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  virtual std::optional<TokenId> pad() const = 0;
  virtual std::optional<TokenId> unk() const = 0;
  /// Whether a raw prompt gets a BOS (the post-processor's template or add_bos_token says so).
  virtual bool adds_bos() const = 0;
  /// The Jinja chat template the files carry, empty if none.
  virtual const std::string& chat_template() const = 0;
};

/// Decodes a growing sequence: what push() and flush() return, put together, equals decode() of the whole, and
/// no piece ever ends inside a character. Invalid bytes come out as U+FFFD after at most three further bytes.
class StreamDecoder {
 public:
  /// `starts_text` false: the sequence continues a text that is shown already, so a leading space of its first token
  /// is kept.
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true, bool starts_text = true);
  std::string push(TokenId id);
  std::string flush();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  bool starts_text_;
  std::string held_;  // the beginning of a character, at most 3 bytes
};

}  // namespace strata::text
