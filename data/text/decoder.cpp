#include "data/text/decoder.h"

#include "data/text/byte_alphabet.h"
#include "data/text/normalize.h"
#include "data/text/unicode.h"

namespace strata::text {

namespace {
constexpr const char* kBlank = "\xE2\x96\x81";  // U+2581

void byte_level_step(Decoder::Token& token) {
  if (!token.added) token.text = spelled_bytes(token.text);
}

// "<0x41>" -> "A"
void byte_fallback_step(Decoder::Token& token) {
  const std::string& t = token.text;
  if (t.size() != 6 || !t.starts_with("<0x") || t[5] != '>') return;
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  int high = digit(t[3]), low = digit(t[4]);
  if (high >= 0 && low >= 0) token.text = std::string(1, static_cast<char>(high * 16 + low));
}

Decoder::Step strip_start_once(const std::string& what) {
  return [what](Decoder::Token& token) {
    if (token.first && token.text.starts_with(what)) token.text.erase(0, what.size());
  };
}

// Up to `start` and `stop` characters `what` from the ends of one token.
void strip_token(std::string& text, const std::string& what, int64_t start, int64_t stop) {
  std::string_view rest = text;
  for (int64_t i = 0; i < start && rest.starts_with(what); ++i) rest.remove_prefix(what.size());
  for (int64_t i = 0; i < stop && rest.ends_with(what); ++i) rest.remove_suffix(what.size());
  text = std::string(rest);
}

const std::string& read_char(const Json& json, const char* key, const Place& place) {
  const std::string& text = read_string(read_member(json, key, place), place.at(key));
  place.at(key).check(!text.empty() && utf8_step(text, 0).length == text.size(), "expected one character, got '{}'",
                      shown(text));
  return text;
}

int64_t read_count(const Json& json, const char* key, const Place& place) {
  const Json& member = read_member(json, key, place);
  place.at(key).check(member.kind() == Json::Kind::integer && member.as_int() >= 0, "expected a number >= 0");
  return member.as_int();
}
}  // namespace

Decoder Decoder::from_json(const Json& json, const Place& place) {
  Decoder decoder;
  if (json.is_null())
    decoder.steps_.push_back([](Token& token) {
      if (!token.first) token.text = " " + token.text;
    });
  else
    decoder.read(json, place);
  return decoder;
}

Decoder Decoder::byte_level() {
  Decoder decoder;
  decoder.steps_.push_back(byte_level_step);
  return decoder;
}

Decoder Decoder::sentencepiece(bool strip) {
  Decoder decoder;
  decoder.steps_.push_back([](Token& token) { token.text = replace_all(token.text, kBlank, " "); });
  decoder.steps_.push_back(byte_fallback_step);
  if (strip) decoder.steps_.push_back(strip_start_once(" "));
  return decoder;
}

void Decoder::read_strip(const Json& json, const Place& place) {
  std::string what = read_char(json, "content", place);
  int64_t start = read_count(json, "start", place), stop = read_count(json, "stop", place);
  if (!fused_) {
    steps_.push_back([=](Token& token) { strip_token(token.text, what, start, stop); });
    return;
  }
  place.check(start <= 1 && stop == 0, "Strip after Fuse is supported for start 0 or 1 and stop 0, got {} and {}",
              start, stop);
  if (start == 1) steps_.push_back(strip_start_once(what));
}

void Decoder::read(const Json& json, const Place& place) {
  const std::string& type = read_string(read_member(json, "type", place), place.at("type"));
  place.at("type").check(!fused_ || type == "Strip" || type == "Fuse", "{} after Fuse is not supported", shown(type));
  if (type == "Sequence") {
    const auto& steps = read_array(read_member(json, "decoders", place), place.at("decoders"));
    for (size_t i = 0; i < steps.size(); ++i) read(steps[i], place.at("decoders").at(i));
  } else if (type == "ByteLevel") {
    steps_.push_back(byte_level_step);
  } else if (type == "ByteFallback") {
    steps_.push_back(byte_fallback_step);
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Strip") {
    read_strip(json, place);
  } else if (type == "Replace") {
    auto replace = read_replace(json, place);
    steps_.push_back([replace](Token& token) {
      if (is_valid_utf8(token.text)) token.text = replace(std::move(token.text));
    });
  } else if (type == "Metaspace") {
    std::string mark = read_char(json, "replacement", place);
    const Json* scheme = json.find("prepend_scheme");
    bool never = scheme && scheme->is_string() ? scheme->as_string() == "never"
                                               : !read_bool(json, "add_prefix_space", true, place);
    steps_.push_back(
        [mark, never](Token& token) { token.text = replace_all(token.text, mark, token.first && !never ? "" : " "); });
  } else {
    place.at("type").fail("unknown decoder '{}'", shown(type));
  }
}

std::string Decoder::bytes(std::string_view token, bool added, bool first) const {
  Token t{std::string(token), added, first};
  for (const Step& step : steps_) step(t);
  return std::move(t.text);
}

}  // namespace strata::text
