// The tokenizers in tests/data and the values expected of them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "data/text/gunzip.h"
#include "data/text/tokenizer.h"
#include "tensor/io/json.h"

namespace strata::text {

inline std::string data_path(const std::string& name) {
  return std::string(STRATA_TEST_DATA) + "/" + name;
}

inline std::vector<Json> read_lines(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::vector<Json> records;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) records.push_back(Json::parse(line, path));
  return records;
}

inline std::vector<Json> read_jsonl(const std::string& name) {
  return read_lines(data_path(name));
}

inline std::vector<TokenId> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list.items()) ids.push_back(static_cast<TokenId>(id.as_int()));
  return ids;
}

inline Json tokenizer_json(const std::string& folder) {
  std::string path = data_path("tokenizers/" + folder + "/tokenizer.json.gz");
  return Json::parse(read_maybe_gzip(path), path);
}

/// Loaded once for all tests of a program: "gpt2", "qwen3", "cl100k_base", "mistral-7b-v0.1", "mistral-legacy",
/// "stories260K".
inline std::shared_ptr<const Tokenizer> tokenizer(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const Tokenizer>> loaded;
  auto& slot = loaded[name];
  if (slot) return slot;
  if (name == "mistral-legacy") {
    Json json = tokenizer_json("mistral-7b-v0.1");
    Json legacy = Json::parse_file(data_path("tokenizers/mistral-7b-v0.1/legacy_override.json"));
    for (const auto& [key, value] : legacy.members()) json.set(key, value);
    slot = Tokenizer::from_json(json, Json::parse_file(data_path("tokenizers/mistral-7b-v0.1/tokenizer_config.json")));
  } else {
    slot = Tokenizer::from_file(data_path(name == "stories260K" ? name : "tokenizers/" + name));
  }
  return slot;
}

}  // namespace strata::text
