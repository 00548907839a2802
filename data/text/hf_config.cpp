#include "data/text/hf_config.h"

#include <algorithm>
#include <charconv>

namespace strata::text {

TokenId parse_id(std::string_view text, const Place& place) {
  TokenId id = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  place.check(error == std::errc() && end == text.data() + text.size() && id >= 0, "expected an id, got '{}'",
              shown(text));
  return id;
}

namespace {
TokenId existing(TokenId id, const TokenizerParts& parts, const Place& place) {
  place.check(parts.vocabulary->has(id), "there is no token {}", id);
  return id;
}

// {"SpecialToken": {"id": "<s>"}} -> the ids that "special_tokens" gives for "<s>"
void append_special(const Json& item, const Json& specials, const Place& place, const TokenizerParts& parts,
                    std::vector<TokenId>& out) {
  const std::string& name = read_string(read_member(item, "id", place), place.at("id"));
  const Json* special = specials.find(name);
  place.check(special != nullptr, "'{}' is not among special_tokens", shown(name));
  const auto& ids = read_array(read_member(*special, "ids", place), place.at("ids"));
  for (const Json& id : ids) out.push_back(existing(read_id(id, place.at("ids")), parts, place.at("ids")));
}

void read_template(const Json& json, const Place& place, TokenizerParts& parts) {
  const auto& items = read_array(read_member(json, "single", place), place.at("single"));
  const Json& specials = read_member(json, "special_tokens", place);
  bool text_seen = false;
  for (size_t i = 0; i < items.size(); ++i) {
    Place where = place.at("single").at(i);
    if (const Json* special = items[i].find("SpecialToken")) {
      append_special(*special, specials, where, parts, text_seen ? parts.suffix : parts.prefix);
    } else {
      const Json* sequence = items[i].find("Sequence");
      where.check(sequence != nullptr, "expected SpecialToken or Sequence");
      const std::string& id = read_string(read_member(*sequence, "id", where), where.at("id"));
      where.check(id == "A" && !text_seen, "expected the text A once, got '{}'", shown(id));
      text_seen = true;
    }
  }
  place.at("single").check(text_seen, "the text A is missing");
}

// ["</s>", 2]
TokenId read_named(const Json& json, const char* key, const Place& place, const TokenizerParts& parts) {
  const auto& pair = read_array(read_member(json, key, place), place.at(key));
  place.at(key).check(pair.size() == 2, "expected [token, id], got {} items", pair.size());
  return existing(read_id(pair[1], place.at(key)), parts, place.at(key));
}

std::optional<TokenId> read_role(const Json& config, const char* key, const Place& place, const TokenizerParts& parts) {
  const Json* value = config.find(key);
  if (!value || value->is_null()) return std::nullopt;
  const Json& text = value->is_object() ? read_member(*value, "content", place.at(key)) : *value;
  auto id = parts.vocabulary->find(read_string(text, place.at(key)));
  place.at(key).check(id.has_value(), "token '{}' is not in the vocabulary", shown(text.as_string()));
  return id;
}

// A string, or a list of {"name", "template"} of which "default" counts.
std::string read_chat_template(const Json& config, const Place& place) {
  const Json* value = config.find("chat_template");
  if (!value || value->is_null()) return "";
  if (!value->is_array()) return read_string(*value, place);
  for (size_t i = 0; i < value->items().size(); ++i) {
    const Json& item = value->items()[i];
    if (read_string(read_member(item, "name", place.at(i)), place.at(i)) == "default")
      return read_string(read_member(item, "template", place.at(i)), place.at(i));
  }
  place.fail("no template is named 'default'");
}

// tokenizer_config.json's add_bos_token / add_eos_token, where it says so, overrides the post-processor's frame.
void override_frame(const Json& config, const char* key, const Place& place, std::optional<TokenId> id,
                    std::vector<TokenId>& frame) {
  const Json* value = config.find(key);
  if (!value || value->is_null()) return;
  bool wanted = read_bool(config, key, false, place);
  if (!wanted) {
    if (id && frame == std::vector{*id}) frame.clear();
  } else if (id && std::find(frame.begin(), frame.end(), *id) == frame.end()) {
    frame.insert(frame.begin(), *id);
  }
}
}  // namespace

void read_post_processor(const Json& json, const Place& place, TokenizerParts& parts) {
  if (json.is_null()) return;
  const std::string& type = read_string(read_member(json, "type", place), place.at("type"));
  if (type == "ByteLevel") return;  // only moves offsets
  if (type == "Sequence") {
    const auto& steps = read_array(read_member(json, "processors", place), place.at("processors"));
    for (size_t i = 0; i < steps.size(); ++i) read_post_processor(steps[i], place.at("processors").at(i), parts);
    return;
  }
  place.check(parts.prefix.empty() && parts.suffix.empty(), "two post-processors add tokens");
  if (type == "TemplateProcessing") {
    read_template(json, place, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.prefix.push_back(read_named(json, "cls", place, parts));
    parts.suffix.push_back(read_named(json, "sep", place, parts));
  } else {
    place.at("type").fail("unknown post-processor '{}'", shown(type));
  }
}

namespace {
// A token that the configuration names as special is, whatever tokenizer.json says of it.
void mark_special(TokenizerParts& parts, std::string_view text) {
  for (AddedToken& token : parts.added)
    if (token.content == text) token.special = true;
}

void mark_more_special(const Json& config, const Place& place, TokenizerParts& parts) {
  const Json* list = config.find("additional_special_tokens");
  if (!list || list->is_null()) return;
  const auto& items = read_array(*list, place);
  for (size_t i = 0; i < items.size(); ++i)
    mark_special(parts, read_string(items[i].is_object() ? read_member(items[i], "content", place.at(i)) : items[i],
                                    place.at(i)));
}
}  // namespace

void read_config(const Json& config, const Place& place, TokenizerParts& parts) {
  parts.bos = read_role(config, "bos_token", place, parts);
  parts.eos = read_role(config, "eos_token", place, parts);
  parts.pad = read_role(config, "pad_token", place, parts);
  parts.unk = read_role(config, "unk_token", place, parts);
  if (!parts.unk) parts.unk = parts.bpe.unk;
  if (!config.contains("bos_token") && parts.prefix.size() == 1) parts.bos = parts.prefix[0];
  for (auto id : {parts.bos, parts.eos, parts.pad, parts.unk})
    if (id) mark_special(parts, parts.vocabulary->text(*id));
  mark_more_special(config, place.at("additional_special_tokens"), parts);
  parts.chat_template = read_chat_template(config, place.at("chat_template"));
  override_frame(config, "add_bos_token", place, parts.bos, parts.prefix);
  override_frame(config, "add_eos_token", place, parts.eos, parts.suffix);
}

}  // namespace strata::text
