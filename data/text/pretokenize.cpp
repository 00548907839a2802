#include "data/text/pretokenize.h"

#include "data/text/byte_alphabet.h"
#include "data/text/regex.h"
#include "data/text/split.h"
#include "data/text/unicode.h"

namespace strata::text {

namespace {
// OpenAI's split of GPT-2, which a ByteLevel step with use_regex means.
constexpr const char* kGpt2Split = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Writes every piece anew: write(text, piece, out) appends what becomes of it.
template <class Write>
void rewrite(Pieces& pieces, Write&& write) {
  std::string out;
  out.reserve(pieces.text.size() + pieces.text.size() / 4);
  for (Piece& piece : pieces.list) {
    size_t begin = out.size();
    write(pieces.view(piece), piece, out);
    piece.begin = begin;
    piece.end = out.size();
  }
  pieces.text = std::move(out);
}

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581, SentencePiece's blank

void append_replaced(std::string& out, std::string_view text, std::string_view blank) {
  for (char c : text)
    if (c == ' ')
      out += blank;
    else
      out += c;
}

PreTokenizer::Step split_by(const Regex& regex, Behavior behavior, bool invert) {
  return [regex, behavior, invert](Pieces& pieces) {
    Regex::Search search(regex);
    split_pieces(pieces, behavior, invert,
                 [&](std::string_view text, auto&& emit) { search.for_each_match(text, emit); });
  };
}

PreTokenizer::Step spell_bytes() {
  return [](Pieces& pieces) {
    rewrite(pieces, [](std::string_view text, const Piece&, std::string& out) { append_spelled(out, text); });
  };
}

PreTokenizer::Step space_in_front() {
  return [](Pieces& pieces) {
    rewrite(pieces, [](std::string_view text, const Piece&, std::string& out) {
      if (text[0] != ' ') out += ' ';
      out += text;
    });
  };
}

PreTokenizer::Step split_by_text(const std::string& what, Behavior behavior, bool invert) {
  return [what, behavior, invert](Pieces& pieces) {
    split_pieces(pieces, behavior, invert, [&](std::string_view text, auto&& emit) {
      for (size_t i = 0; !what.empty() && (i = text.find(what, i)) != std::string_view::npos; i += what.size())
        emit(i, i + what.size());
    });
  };
}

// Runs of word characters, runs of others; white space goes.
void words_and_signs(Pieces& pieces) {
  split_pieces(pieces, Behavior::removed, true, [](std::string_view text, auto&& emit) {
    size_t start = 0, last = 0;
    int kind = 0;  // of the run from start to last: 0 white space, 1 word, 2 others
    for_each_char(text, [&](char32_t code, size_t begin, size_t end) {
      int now = is_white_space(code) ? 0 : is_word(code) ? 1 : 2;
      if (now != kind) {
        if (kind != 0) emit(start, begin);
        start = begin;
        kind = now;
      }
      last = end;
    });
    if (kind != 0) emit(start, last);
  });
}

PreTokenizer::Step read_split(const Json& json, const Place& place) {
  read_member(json, "behavior", place);
  Behavior behavior = read_behavior(json, Behavior::isolated, place);
  bool invert = read_bool(json, "invert", false, place);
  const Json& pattern = read_member(json, "pattern", place);
  Place where = place.at("pattern");
  if (const Json* text = pattern.find("String"); text && !(text->is_string() && text->as_string().empty()))
    return split_by_text(read_string(*text, where.at("String")), behavior, invert);
  const Json* regex = pattern.find("Regex");
  if (!regex) regex = pattern.find("String");  // the empty string stands between any two characters, as a regex does
  where.check(regex != nullptr, "expected String or Regex");
  return split_by(Regex(read_string(*regex, where), where), behavior, invert);
}

enum class Prepend { first, always, never };

Prepend read_prepend(const Json& json, const Place& place) {
  std::string scheme = "always";
  if (const Json* member = json.find("prepend_scheme"); member && !member->is_null())
    scheme = read_string(*member, place.at("prepend_scheme"));
  else if (!read_bool(json, "add_prefix_space", true, place))  // the older spelling
    scheme = "never";
  if (scheme == "first") return Prepend::first;
  if (scheme == "always") return Prepend::always;
  if (scheme == "never") return Prepend::never;
  place.at("prepend_scheme").fail("expected first, always or never, got '{}'", shown(scheme));
}

PreTokenizer::Step metaspace(const std::string& mark, Prepend prepend) {
  return [mark, prepend](Pieces& pieces) {
    rewrite(pieces, [&](std::string_view text, const Piece& piece, std::string& out) {
      bool wanted = prepend == Prepend::always || (prepend == Prepend::first && piece.starts_text);
      if (wanted && text[0] != ' ' && !text.starts_with(mark)) out += mark;
      append_replaced(out, text, mark);
    });
  };
}
}  // namespace

PreTokenizer PreTokenizer::from_json(const Json& json, const Place& place) {
  PreTokenizer result;
  if (!json.is_null()) result.read(json, place);
  return result;
}

PreTokenizer PreTokenizer::byte_level(const std::vector<std::string>& patterns, bool prefix, const Place& place) {
  PreTokenizer result;
  if (prefix) result.steps_.push_back(space_in_front());
  for (const auto& p : patterns) result.steps_.push_back(split_by(Regex(p, place), Behavior::isolated, false));
  result.steps_.push_back(spell_bytes());
  return result;
}

PreTokenizer PreTokenizer::sentencepiece(bool prefix) {
  PreTokenizer result;
  result.steps_.push_back([prefix](Pieces& pieces) {
    rewrite(pieces, [&](std::string_view text, const Piece&, std::string& out) {
      if (prefix) out += kBlank;
      append_replaced(out, text, kBlank);
    });
  });
  return result;
}

void PreTokenizer::cut_before_blanks(Pieces& pieces) {
  std::vector<Piece> out;
  for (const Piece& piece : pieces.list) {
    std::string_view text = pieces.view(piece);
    size_t begin = 0, blanks_end = std::string_view::npos;  // where the run of blanks before ends
    for (size_t i = 0; (i = text.find(kBlank, i)) != std::string_view::npos; i += kBlank.size()) {
      if (i > begin && i != blanks_end) {
        out.push_back({piece.begin + begin, piece.begin + i, piece.starts_text && begin == 0});
        begin = i;
      }
      blanks_end = i + kBlank.size();
    }
    out.push_back({piece.begin + begin, piece.end, piece.starts_text && begin == 0});
  }
  pieces.list = std::move(out);
}

void PreTokenizer::read(const Json& json, const Place& place) {
  const std::string& type = read_string(read_member(json, "type", place), place.at("type"));
  if (type == "Sequence") {
    const auto& steps = read_array(read_member(json, "pretokenizers", place), place.at("pretokenizers"));
    for (size_t i = 0; i < steps.size(); ++i) read(steps[i], place.at("pretokenizers").at(i));
  } else if (type == "Split") {
    steps_.push_back(read_split(json, place));
  } else if (type == "ByteLevel") {
    if (read_bool(json, "add_prefix_space", true, place)) steps_.push_back(space_in_front());
    if (read_bool(json, "use_regex", true, place))
      steps_.push_back(split_by(Regex(kGpt2Split, place), Behavior::isolated, false));
    steps_.push_back(spell_bytes());
  } else if (type == "Digits") {
    Behavior behavior = read_bool(json, "individual_digits", false, place) ? Behavior::isolated : Behavior::contiguous;
    steps_.push_back([behavior](Pieces& pieces) { split_at_chars(pieces, behavior, is_numeric); });
  } else if (type == "Metaspace") {
    const std::string& mark = read_string(read_member(json, "replacement", place), place.at("replacement"));
    place.at("replacement")
        .check(!mark.empty() && utf8_step(mark, 0).length == mark.size(), "expected one character, got '{}'",
               shown(mark));
    steps_.push_back(metaspace(mark, read_prepend(json, place)));
    if (read_bool(json, "split", true, place)) steps_.push_back(split_by_text(mark, Behavior::merged_with_next, false));
  } else if (type == "Whitespace") {
    steps_.push_back(words_and_signs);
  } else if (type == "WhitespaceSplit") {
    steps_.push_back([](Pieces& pieces) { split_at_chars(pieces, Behavior::removed, is_white_space); });
  } else if (type == "Punctuation") {
    Behavior behavior = read_behavior(json, Behavior::isolated, place);
    steps_.push_back([behavior](Pieces& pieces) { split_at_chars(pieces, behavior, is_punctuation); });
  } else if (type == "CharDelimiterSplit") {
    const std::string& mark = read_string(read_member(json, "delimiter", place), place.at("delimiter"));
    steps_.push_back(split_by_text(mark, Behavior::removed, false));
  } else if (type == "BertPreTokenizer") {
    steps_.push_back([](Pieces& pieces) { split_at_chars(pieces, Behavior::removed, is_white_space); });
    steps_.push_back([](Pieces& pieces) { split_at_chars(pieces, Behavior::isolated, is_punctuation); });
  } else {
    place.at("type").fail("unknown pre-tokenizer '{}'", shown(type));
  }
}

Pieces PreTokenizer::apply(std::string text, bool starts_text) const {
  Pieces pieces;
  if (!text.empty()) pieces.list.push_back({0, text.size(), starts_text});
  pieces.text = std::move(text);
  for (const Step& step : steps_) step(pieces);
  return pieces;
}

}  // namespace strata::text
