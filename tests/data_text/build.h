// Small tokenizers made in a test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/text/byte_alphabet.h"
#include "data/text/tokenizer.h"

namespace strata::text {

/// A tokenizer.json with the given tokens (ids 0, 1, ...) and merges, and no other step.
inline Json bpe_json(const std::vector<std::string>& tokens,
                     const std::vector<std::pair<std::string, std::string>>& merges) {
  Json vocab = Json::object(), list = Json::array(), model = Json::object(), json = Json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocab.set(tokens[i], i);
  for (const auto& [left, right] : merges) list.push(Json::array().push(left).push(right));
  model.set("type", "BPE").set("vocab", vocab).set("merges", list);
  return json.set("model", model).set("decoder", Json::object().set("type", "Fuse"));
}

struct Added {
  TokenId id;
  std::string content;
  bool special;
};

/// The "added_tokens" of a tokenizer.json.
inline Json added(const std::vector<Added>& tokens) {
  Json list = Json::array();
  for (const Added& t : tokens)
    list.push(
        Json::object().set("id", t.id).set("content", t.content).set("special", t.special).set("normalized", false));
  return list;
}

/// A byte-level tokenizer without merges: the 256 bytes (id = byte), then `more`, given as bytes.
inline std::shared_ptr<const Tokenizer> bytes_tokenizer(const std::vector<std::string>& more) {
  std::vector<std::string> tokens;
  auto spell = [&](std::string_view bytes) { append_spelled(tokens.emplace_back(), bytes); };
  for (int b = 0; b < 256; ++b) spell(std::string(1, static_cast<char>(b)));
  for (const std::string& bytes : more) spell(bytes);
  Json step = Json::object();
  step.set("type", "ByteLevel").set("add_prefix_space", false);
  return Tokenizer::from_json(bpe_json(tokens, {}).set("pre_tokenizer", step).set("decoder", step));
}

}  // namespace strata::text
