#include "data/text/bpe_tokenizer.h"

#include <unordered_map>

#include "data/text/unicode.h"

namespace strata::text {

struct BpeTokenizer::Work {
  const Finders& finders;
  std::vector<TokenId> ids;
  Bpe::Scratch scratch;
};

BpeTokenizer::BpeTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  auto size = static_cast<size_t>(vocabulary().end());
  special_.resize(size);
  added_.resize(size);
  for (const AddedToken& token : parts_.added) {
    added_[static_cast<size_t>(token.id)] = true;
    if (token.special) special_[static_cast<size_t>(token.id)] = true;
    std::string content = token.normalized ? parts_.normalizer.apply(token.content) : token.content;
    for (Finders* finders : {&without_special_, &with_special_}) {
      if (token.special && finders == &without_special_) continue;
      (token.normalized ? finders->normalized : finders->raw).add(token, content);
    }
  }
  bpe_ = std::make_unique<const Bpe>(parts_.vocabulary, parts_.merges, parts_.bpe, plain());
  parts_.merges = {};
  for (TokenId id = 0; id < vocabulary().end(); ++id) {
    bytes_begin_.push_back(bytes_.size());
    if (vocabulary().has(id))
      bytes_ += parts_.decoder.bytes(vocabulary().text(id), added_[static_cast<size_t>(id)], false);
  }
  bytes_begin_.push_back(bytes_.size());
}

// Special tokens never come out of plain text, even where merges would build one: a user must not close their own turn.
std::vector<bool> BpeTokenizer::plain() const {
  std::vector<bool> plain = parts_.in_model;
  plain.resize(special_.size());
  for (size_t id = 0; id < plain.size(); ++id)
    if (special_[id]) plain[id] = false;
  return plain;
}

std::vector<TokenId> BpeTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) text = repaired = replace_invalid_utf8(text);
  Work work{options.parse_special ? with_special_ : without_special_, {}, {}};
  if (options.add_special) work.ids = parts_.prefix;
  encode_raw(text, true, work);
  if (options.add_special) work.ids.insert(work.ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  return std::move(work.ids);
}

void BpeTokenizer::encode_raw(std::string_view text, bool starts_text, Work& work) const {
  for (const Section& s : work.finders.raw.split(text)) {
    if (s.id >= 0) {
      work.ids.push_back(s.id);
      continue;
    }
    std::string_view section = text.substr(s.begin, s.end - s.begin);
    if (parts_.normalizer.empty())
      encode_normalized(section, starts_text && s.begin == 0, work);
    else
      encode_normalized(parts_.normalizer.apply(std::string(section)), starts_text && s.begin == 0, work);
  }
}

void BpeTokenizer::encode_normalized(std::string_view text, bool starts_text, Work& work) const {
  for (const Section& s : work.finders.normalized.split(text)) {
    if (s.id >= 0)
      work.ids.push_back(s.id);
    else
      encode_words(std::string(text.substr(s.begin, s.end - s.begin)), starts_text && s.begin == 0, work);
  }
}

void BpeTokenizer::encode_words(std::string text, bool starts_text, Work& work) const {
  Pieces pieces = parts_.pre_tokenizer.apply(std::move(text), starts_text);
  if (bpe_->cuts_before_blank()) PreTokenizer::cut_before_blanks(pieces);
  constexpr size_t kWorthCaching = 256, kLongestCached = 64;
  bool cache = pieces.list.size() >= kWorthCaching;
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> seen;  // piece -> its ids in work.ids
  for (const Piece& piece : pieces.list) {
    std::string_view word = pieces.view(piece);
    if (!cache || word.size() > kLongestCached) {
      bpe_->encode(word, work.ids, work.scratch);
      continue;
    }
    auto [it, fresh] = seen.try_emplace(word, work.ids.size(), 0);
    if (fresh) {
      bpe_->encode(word, work.ids, work.scratch);
      it->second.second = work.ids.size();
    } else {
      for (size_t i = it->second.first; i < it->second.second; ++i) work.ids.push_back(work.ids[i]);
    }
  }
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  bool start = true;
  for (TokenId id : ids) {
    if (!vocabulary().has(id) || (skip_special && is_special(id))) continue;
    bytes += token_bytes(id, start);
    start = false;
  }
  return replace_invalid_utf8(bytes);
}

std::string BpeTokenizer::token_bytes(TokenId id, bool starts_text) const {
  if (!vocabulary().has(id)) return "";
  auto i = static_cast<size_t>(id);
  if (starts_text) return parts_.decoder.bytes(vocabulary().text(id), added_[i], true);
  return bytes_.substr(bytes_begin_[i], bytes_begin_[i + 1] - bytes_begin_[i]);
}

const std::string& BpeTokenizer::token_text(TokenId id) const {
  check<FormatError>(vocabulary().has(id), "{}: there is no token {}, ids are below {}", parts_.file, id,
                     vocabulary().end());
  return vocabulary().text(id);
}

bool BpeTokenizer::adds_bos() const {
  return parts_.bos && !parts_.prefix.empty() && parts_.prefix.front() == *parts_.bos;
}

}  // namespace strata::text
