#include "data/text/normalize.h"

#include "data/text/byte_alphabet.h"
#include "data/text/regex.h"
#include "data/text/unicode.h"

namespace strata::text {

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0;;) {
    size_t hit = what.empty() ? std::string_view::npos : text.find(what, i);
    out += text.substr(i, hit == std::string_view::npos ? hit : hit - i);
    if (hit == std::string_view::npos) return out;
    out += with;
    i = hit + what.size();
  }
}

Normalizer::Step read_replace(const Json& json, const Place& place) {
  std::string with = read_string(read_member(json, "content", place), place.at("content"));
  const Json& pattern = read_member(json, "pattern", place);
  Place where = place.at("pattern");
  if (const Json* text = pattern.find("String")) {
    std::string what = read_string(*text, where.at("String"));
    where.at("String").check(!what.empty(), "must not be empty");
    return [what, with](std::string s) { return replace_all(s, what, with); };
  }
  const Json* regex = pattern.find("Regex");
  where.check(regex != nullptr, "expected String or Regex");
  Regex compiled(read_string(*regex, where.at("Regex")), where.at("Regex"));
  return [compiled, with](std::string s) { return compiled.replace_all(s, with); };
}

namespace {
std::string strip_white_space(std::string_view text, bool left, bool right) {
  size_t first = text.size(), last = 0;
  for_each_char(text, [&](char32_t code, size_t begin, size_t end) {
    if (is_white_space(code)) return;
    first = std::min(first, begin);
    last = end;
  });
  size_t begin = left ? first : 0, end = right ? last : text.size();
  return begin < end ? std::string(text.substr(begin, end - begin)) : "";
}

std::string strip_accents(std::string_view text) {
  std::string out;
  for_each_char(text, [&](char32_t code, size_t begin, size_t end) {
    if (!is_mark(code)) out += text.substr(begin, end - begin);
  });
  return out;
}
}  // namespace

Normalizer Normalizer::from_json(const Json& json, const Place& place) {
  Normalizer normalizer;
  if (!json.is_null()) normalizer.read(json, place);
  return normalizer;
}

void Normalizer::read(const Json& json, const Place& place) {
  const std::string& type = read_string(read_member(json, "type", place), place.at("type"));
  if (type == "Sequence") {
    const auto& steps = read_array(read_member(json, "normalizers", place), place.at("normalizers"));
    for (size_t i = 0; i < steps.size(); ++i) read(steps[i], place.at("normalizers").at(i));
  } else if (type == "NFC") {
    add([](std::string s) { return normalize(s, NormalForm::nfc); });
  } else if (type == "NFD") {
    add([](std::string s) { return normalize(s, NormalForm::nfd); });
  } else if (type == "NFKC") {
    add([](std::string s) { return normalize(s, NormalForm::nfkc); });
  } else if (type == "NFKD") {
    add([](std::string s) { return normalize(s, NormalForm::nfkd); });
  } else if (type == "Lowercase") {
    add([](std::string s) { return lowercase(s); });
  } else if (type == "Strip") {
    bool left = read_bool(json, "strip_left", true, place), right = read_bool(json, "strip_right", true, place);
    add([left, right](std::string s) { return strip_white_space(s, left, right); });
  } else if (type == "StripAccents") {
    add([](std::string s) { return strip_accents(s); });
  } else if (type == "Prepend") {
    std::string front = read_string(read_member(json, "prepend", place), place.at("prepend"));
    add([front](std::string s) { return s.empty() ? s : front + s; });
  } else if (type == "Replace") {
    add(read_replace(json, place));
  } else if (type == "ByteLevel") {
    add([](std::string s) {
      std::string out;
      append_spelled(out, s);
      return out;
    });
  } else {
    place.at("type").fail("unknown normalizer '{}'", shown(type));
  }
}

std::string Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) text = step(std::move(text));
  return text;
}

}  // namespace strata::text
