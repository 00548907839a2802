// A tokenizer from GGUF metadata: "gpt2" is byte-level BPE with merges, "llama" SentencePiece BPE with scores.
#include <cmath>

#include "data/text/bpe_tokenizer.h"
#include "data/text/gguf_pre.h"
#include "data/text/merges.h"
#include "data/text/unicode.h"

namespace strata::text {

namespace {
// tokenizer.ggml.token_type
constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

constexpr size_t kMaxSpelling = 1024;  // bytes of a token that is joined from others: all ways to cut it are tried

struct Reader {
  const Json& metadata;
  Place root;

  static std::string full(std::string_view key) { return fmt::format("tokenizer.ggml.{}", key); }
  Place place(std::string_view key) const { return root.at(full(key)); }
  const Json* find(std::string_view key) const { return metadata.find(full(key)); }
  const Json& at(std::string_view key) const { return read_member(metadata, full(key), root); }
  bool flag(std::string_view key, bool fallback) const { return read_bool(metadata, full(key), fallback, root); }

  std::optional<TokenId> id(std::string_view key, const Vocabulary& vocabulary,
                            std::optional<TokenId> fallback = {}) const {
    const Json* value = find(key);
    if (!value || value->is_null()) return fallback && vocabulary.has(*fallback) ? fallback : std::nullopt;
    TokenId found = read_id(*value, place(key));
    place(key).check(vocabulary.has(found), "must be below the number of tokens {}, got {}", vocabulary.end(), found);
    return found;
  }
};

std::shared_ptr<Vocabulary> read_tokens(const Reader& in) {
  const auto& tokens = read_array(in.at("tokens"), in.place("tokens"));
  in.place("tokens").check(!tokens.empty() && tokens.size() < (1u << 30), "expected at least one token, got {}",
                           tokens.size());
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(tokens.size());
  Place place = in.place("tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is_string() || !is_valid_utf8(tokens[i].as_string()))
      place.at(i).fail("expected a string in UTF-8, got {}", tokens[i].kind_name());
    vocabulary->add(static_cast<TokenId>(i), tokens[i].as_string(), place);
  }
  return vocabulary;
}

// One number for each token; all `fallback` if the field is missing.
std::vector<double> read_numbers(const Reader& in, const char* key, size_t count, double fallback) {
  const Json* list = in.find(key);
  if (!list) return std::vector<double>(count, fallback);
  const auto& items = read_array(*list, in.place(key));
  in.place(key).check(items.size() == count, "must have one entry for each of the {} tokens, got {}", count,
                      items.size());
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    if (!items[i].is_number() || std::isnan(items[i].as_double()))
      in.place(key).at(i).fail("expected a number, got {}", items[i].kind_name());
    numbers[i] = items[i].as_double();
  }
  return numbers;
}

void read_types(const Reader& in, TokenizerParts& parts, std::vector<bool>& usable) {
  auto types = read_numbers(in, "token_type", static_cast<size_t>(parts.vocabulary->end()), kNormal);
  parts.in_model.assign(types.size(), true);
  usable.assign(types.size(), true);
  for (size_t i = 0; i < types.size(); ++i) {
    bool known = types[i] >= kNormal && types[i] <= kByte && types[i] == std::floor(types[i]);
    if (!known) in.place("token_type").at(i).fail("expected a type from 1 to 6, got {}", types[i]);
    int type = static_cast<int>(types[i]);
    usable[i] = type == kNormal || type == kUserDefined || type == kUnused;
    bool special = type == kControl || type == kUnknown;
    if (!special && type != kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(i);
    token.content = parts.vocabulary->text(token.id);
    token.special = special;
    parts.added.push_back(std::move(token));
  }
}

// Returns whether a raw prompt gets a BOS unless the file says otherwise.
bool read_byte_level(const Reader& in, TokenizerParts& parts) {
  const std::string& name = read_string(in.at("pre"), in.place("pre"));
  const GgufPre* pre = find_gguf_pre(name);
  in.place("pre").check(pre != nullptr, "unknown pre-tokenizer '{}'", shown(name));
  if (pre->nfc) parts.normalizer.add([](std::string s) { return normalize(s, NormalForm::nfc); });
  parts.pre_tokenizer = PreTokenizer::byte_level(pre->patterns, in.flag("add_space_prefix", false), in.place("pre"));
  parts.merges = read_merges(in.at("merges"), in.place("merges"), *parts.vocabulary);
  parts.bpe.ignore_merges = pre->ignore_merges;
  parts.decoder = Decoder::byte_level();
  return pre->add_bos;
}

void read_sentencepiece(const Reader& in, TokenizerParts& parts, const std::vector<bool>& usable) {
  bool prefix = in.flag("add_space_prefix", true);
  parts.pre_tokenizer = PreTokenizer::sentencepiece(prefix);
  for (TokenId id = 0; id < parts.vocabulary->end(); ++id)
    if (usable[static_cast<size_t>(id)] && parts.vocabulary->text(id).size() > kMaxSpelling)
      in.place("tokens")
          .at(static_cast<size_t>(id))
          .fail("a token may have at most {} bytes, got {}", kMaxSpelling, parts.vocabulary->text(id).size());
  in.at("scores");
  auto scores = read_numbers(in, "scores", usable.size(), 0);
  parts.merges = merges_from_scores(*parts.vocabulary, {scores.begin(), scores.end()}, usable);
  parts.in_model = usable;
  parts.bpe.byte_fallback = true;
  parts.decoder = Decoder::sentencepiece(prefix);
}

void read_roles(const Reader& in, TokenizerParts& parts, bool sentencepiece, bool add_bos) {
  auto fallback = [&](TokenId id) {
    return sentencepiece ? std::optional(id) : std::nullopt;
  };  // SentencePiece's own ids
  parts.unk = in.id("unknown_token_id", *parts.vocabulary, fallback(0));
  parts.bos = in.id("bos_token_id", *parts.vocabulary, fallback(1));
  parts.eos = in.id("eos_token_id", *parts.vocabulary, fallback(2));
  parts.pad = in.id("padding_token_id", *parts.vocabulary);
  if (sentencepiece) parts.bpe.unk = parts.unk;
  if (in.flag("add_bos_token", add_bos)) {
    in.place("bos_token_id").check(parts.bos.has_value(), "is missing, but add_bos_token is true");
    parts.prefix = {*parts.bos};
  }
  if (in.flag("add_eos_token", false)) {
    in.place("eos_token_id").check(parts.eos.has_value(), "is missing, but add_eos_token is true");
    parts.suffix = {*parts.eos};
  }
  if (const Json* chat = in.metadata.find("tokenizer.chat_template"))
    parts.chat_template = read_string(*chat, in.root.at("tokenizer.chat_template"));
}
}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::from_gguf(const Json& metadata) {
  Reader in{metadata, {metadata.source().empty() ? "gguf metadata" : metadata.source(), ""}};
  const std::string& model = read_string(in.at("model"), in.place("model"));
  in.place("model").check(model == "gpt2" || model == "llama", "unknown tokenizer model '{}'", shown(model));
  TokenizerParts parts;
  parts.file = in.root.file;
  parts.vocabulary = read_tokens(in);
  std::vector<bool> usable;
  read_types(in, parts, usable);
  bool sentencepiece = model == "llama", add_bos = true;
  if (sentencepiece)
    read_sentencepiece(in, parts, usable);
  else
    add_bos = read_byte_level(in, parts);
  read_roles(in, parts, sentencepiece, add_bos);
  return std::make_shared<BpeTokenizer>(std::move(parts));
}

}  // namespace strata::text
