// tokenizer.json and tokenizer_config.json (Hugging Face), read into TokenizerParts.
#include <filesystem>
#include <limits>

#include "data/text/bpe_tokenizer.h"
#include "data/text/gunzip.h"
#include "data/text/hf_config.h"
#include "data/text/merges.h"

namespace strata::text {

namespace {
Place file_of(const Json& json, const char* fallback) {
  std::string source = json.source();
  return {source.empty() ? fallback : source, ""};
}

void read_vocabulary(const Json& model, const Place& place, Vocabulary& vocabulary, std::vector<bool>& in_model) {
  const Json& vocab = read_member(model, "vocab", place);
  Place where = place.at("vocab");
  where.check(vocab.is_object(), "expected object, got {}", vocab.kind_name());
  vocabulary.reserve(vocab.size() + 64);
  for (const auto& [text, id] : vocab.members()) {
    if (id.kind() != Json::Kind::integer || id.as_int() < 0 || id.as_int() > std::numeric_limits<TokenId>::max())
      where.at(shown(text)).fail("expected an id, got {}", shown(id.dump()));
    vocabulary.add(static_cast<TokenId>(id.as_int()), text, where);
  }
  in_model.resize(static_cast<size_t>(vocabulary.end()));
  for (TokenId id = 0; id < vocabulary.end(); ++id) in_model[static_cast<size_t>(id)] = vocabulary.has(id);
}

void refuse_text(const Json& model, const char* key, const Place& place) {
  const Json* member = model.find(key);
  bool empty = !member || member->is_null() || (member->is_string() && member->as_string().empty());
  place.at(key).check(empty, "is not supported, got '{}'", empty ? "" : shown(member->dump()));
}

void read_model(const Json& json, TokenizerParts& parts, Vocabulary& vocabulary, const Place& root) {
  const Json& model = read_member(json, "model", root);
  Place place = root.at("model");
  if (const Json* type = model.find("type"))
    place.at("type").check(type->is_string() && type->as_string() == "BPE", "only BPE models are supported, got '{}'",
                           shown(type->dump()));
  refuse_text(model, "continuing_subword_prefix", place);
  refuse_text(model, "end_of_word_suffix", place);
  if (const Json* dropout = model.find("dropout"); dropout && !dropout->is_null())
    place.at("dropout").check(dropout->is_number() && dropout->as_double() == 0, "is not supported, got {}",
                              dropout->dump());
  read_vocabulary(model, place, vocabulary, parts.in_model);
  parts.merges = read_merges(read_member(model, "merges", place), place.at("merges"), vocabulary);
  parts.bpe.fuse_unk = read_bool(model, "fuse_unk", false, place);
  parts.bpe.byte_fallback = read_bool(model, "byte_fallback", false, place);
  parts.bpe.ignore_merges = read_bool(model, "ignore_merges", false, place);
  if (const Json* unk = model.find("unk_token"); unk && !unk->is_null()) {
    const std::string& text = read_string(*unk, place.at("unk_token"));
    parts.bpe.unk = vocabulary.find(text);
    place.at("unk_token").check(parts.bpe.unk.has_value(), "token '{}' is not in the vocabulary", shown(text));
  }
}

AddedToken read_added(const Json& json, TokenId id, const Place& place) {
  AddedToken token;
  token.id = id;
  token.content = read_string(read_member(json, "content", place), place.at("content"));
  token.special = read_bool(json, "special", false, place);
  token.normalized = read_bool(json, "normalized", !token.special, place);
  token.single_word = read_bool(json, "single_word", false, place);
  token.lstrip = read_bool(json, "lstrip", false, place);
  token.rstrip = read_bool(json, "rstrip", false, place);
  return token;
}

// A token that is listed already must be the same one; a new one may have a spelling of the model.
void take_added(AddedToken token, TokenizerParts& parts, Vocabulary& vocabulary, const Place& place) {
  auto known = vocabulary.find(token.content);
  if (known)
    place.check(*known == token.id, "token '{}' has id {}, but id {} in the vocabulary", shown(token.content), token.id,
                *known);
  else
    vocabulary.add(token.id, token.content, place);
  parts.added.push_back(std::move(token));
}

void read_added_tokens(const Json& json, const Json& config, TokenizerParts& parts, Vocabulary& vocabulary,
                       const Place& root, const Place& config_root) {
  std::vector<bool> listed;
  auto first_time = [&](TokenId id) {
    listed.resize(std::max(listed.size(), static_cast<size_t>(vocabulary.end())));
    bool first = !listed[static_cast<size_t>(id)];
    listed[static_cast<size_t>(id)] = true;
    return first;
  };
  if (const Json* list = json.find("added_tokens"); list && !list->is_null()) {
    Place where = root.at("added_tokens");
    const auto& tokens = read_array(*list, where);
    for (size_t i = 0; i < tokens.size(); ++i) {
      TokenId id = read_id(read_member(tokens[i], "id", where.at(i)), where.at(i).at("id"));
      take_added(read_added(tokens[i], id, where.at(i)), parts, vocabulary, where.at(i));
      where.at(i).check(first_time(id), "id {} is listed twice", id);
    }
  }
  const Json* more = config.find("added_tokens_decoder");
  if (!more || more->is_null()) return;
  Place where = config_root.at("added_tokens_decoder");
  where.check(more->is_object(), "expected object, got {}", more->kind_name());
  for (const auto& [key, value] : more->members()) {
    Place place = where.at(shown(key));
    TokenId id = parse_id(key, place);
    AddedToken token = read_added(value, id, place);
    place.check(!vocabulary.has(id) || vocabulary.text(id) == token.content, "token {} is '{}' here, but '{}' in {}",
                id, shown(token.content), vocabulary.has(id) ? shown(vocabulary.text(id)) : "", root.file);
    if (vocabulary.has(id) && static_cast<size_t>(id) < listed.size() && listed[static_cast<size_t>(id)]) continue;
    take_added(std::move(token), parts, vocabulary, place);
  }
}

std::shared_ptr<const Tokenizer> build(const Json& json, const Json& config) {
  Place root = file_of(json, "tokenizer.json"), config_root = file_of(config, "tokenizer_config.json");
  root.check(json.is_object(), "expected object, got {}", json.kind_name());
  TokenizerParts parts;
  parts.file = root.file;
  auto vocabulary = std::make_shared<Vocabulary>();
  read_model(json, parts, *vocabulary, root);
  read_added_tokens(json, config, parts, *vocabulary, root, config_root);
  auto step = [&](const char* key) { return json.find(key) ? *json.find(key) : Json(); };
  parts.normalizer = Normalizer::from_json(step("normalizer"), root.at("normalizer"));
  parts.pre_tokenizer = PreTokenizer::from_json(step("pre_tokenizer"), root.at("pre_tokenizer"));
  parts.decoder = Decoder::from_json(step("decoder"), root.at("decoder"));
  parts.vocabulary = vocabulary;
  read_post_processor(step("post_processor"), root.at("post_processor"), parts);
  read_config(config, config_root, parts);
  return std::make_shared<BpeTokenizer>(std::move(parts));
}

std::filesystem::path first_that_exists(const std::filesystem::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::filesystem::exists(folder / name)) return folder / name;
  return {};
}

Json read_json(const std::filesystem::path& path) {
  return Json::parse(read_maybe_gzip(path), path.string());
}
}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::from_json(const Json& tokenizer, const Json& config) {
  return build(tokenizer, config);
}

std::shared_ptr<const Tokenizer> Tokenizer::from_file(const std::filesystem::path& path) {
  bool is_folder = std::filesystem::is_directory(path);
  std::filesystem::path folder = is_folder ? path : path.parent_path();
  std::filesystem::path file = is_folder ? first_that_exists(folder, {"tokenizer.json", "tokenizer.json.gz"}) : path;
  check(!file.empty(), "{}: has no tokenizer.json{}", path.string(),
        std::filesystem::exists(folder / "tokenizer.model") ? " (tokenizer.model alone is not supported)" : "");
  Json json = read_json(file);
  Json config;
  if (auto beside = first_that_exists(folder, {"tokenizer_config.json"}); !beside.empty()) config = read_json(beside);
  Place{(folder / "tokenizer_config.json").string(), ""}.check(config.is_null() || config.is_object(),
                                                               "expected object, got {}", config.kind_name());
  if (auto roles = first_that_exists(folder, {"special_tokens_map.json"}); !roles.empty()) {
    Json map = read_json(roles);
    Place(file_of(map, "")).check(map.is_object(), "expected object, got {}", map.kind_name());
    for (const auto& [role, token] : map.members())  // older folders have the roles here only
      if (!config.contains(role)) config.set(role, token);
  }
  if (auto jinja = first_that_exists(folder, {"chat_template.jinja"}); !jinja.empty())
    config.set("chat_template", read_maybe_gzip(jinja));
  return build(json, config);
}

}  // namespace strata::text
