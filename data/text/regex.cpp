#include "data/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <utility>

#include "data/text/unicode.h"

namespace strata::text {

namespace {
// Oniguruma's \s is White_Space (PCRE2's has U+180E too); its \w is Alphabetic, M, Nd, Pc and six signs of Latin-1.
#define SPACE R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"
#define NOT_SPACE                                                                                         \
  R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})" \
  R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})"
#define WORD R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})"

// Reads an Oniguruma pattern once, left to right, and writes the same pattern for PCRE2.
class Translator {
 public:
  Translator(std::string_view in, const Place& place) : in_(in), place_(place) {}

  std::string run() {
    while (at_ < in_.size()) {
      char c = in_[at_];
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        class_char(c);
      } else if (c == '[') {
        open_class();
      } else if (c == '(' && in_.substr(at_, 2) == "(?") {
        group();
      } else if (c == '{') {
        interval();
      } else {
        out_ += c;
        ++at_;
      }
    }
    place_.check(!in_class_, "character class without ']' in '{}'", shown(in_));
    return std::move(out_);
  }

 private:
  void escape() {
    place_.check(at_ + 1 < in_.size(), "pattern ends with a backslash: '{}'", shown(in_));
    char c = in_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 's': out_ += in_class_ ? SPACE : "[" SPACE "]"; break;
      case 'S': out_ += in_class_ ? NOT_SPACE : "[^" SPACE "]"; break;
      case 'w': out_ += in_class_ ? WORD : "[" WORD "]"; break;
      case 'W':
        place_.check(!in_class_, "\\W inside a character class is not supported in '{}'", shown(in_));
        out_ += "[^" WORD "]";
        break;
      case 'h': out_ += in_class_ ? "0-9a-fA-F" : "[0-9a-fA-F]"; break;
      case 'b': out_ += in_class_ ? "\\b" : "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"; break;
      case 'B':
        place_.check(!in_class_, "\\B inside a character class in '{}'", shown(in_));
        out_ += "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))";
        break;
      case 'H':
      case 'R':
      case 'X':
      case 'K':
      case 'N':
      case 'O':
      case 'Q':
      case 'E':
      case 'C': place_.fail("escape \\{} is not supported in '{}'", c, shown(in_));
      default: (out_ += '\\') += c;
    }
  }

  void open_class() {
    out_ += '[';
    in_class_ = true;
    if (++at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == ']') {  // first in a class it is an ordinary character
      out_ += "\\]";
      ++at_;
    }
  }

  void class_char(char c) {
    if (c == ']') in_class_ = false;
    if (c == '[') return posix_class();
    place_.check(in_.substr(at_, 2) != "&&", "'&&' in a character class is not supported in '{}'", shown(in_));
    out_ += c;
    ++at_;
  }

  // [:alpha:] and its kin, which PCRE2 would take for letters only
  void posix_class() {
    static constexpr std::pair<std::string_view, const char*> kClasses[] = {{"[:alpha:]", R"(\p{Alphabetic})"},
                                                                            {"[:digit:]", R"(\p{Nd})"},
                                                                            {"[:alnum:]", R"(\p{Alphabetic}\p{Nd})"},
                                                                            {"[:upper:]", R"(\p{Uppercase})"},
                                                                            {"[:lower:]", R"(\p{Lowercase})"},
                                                                            {"[:space:]", SPACE},
                                                                            {"[:word:]", WORD},
                                                                            {"[:xdigit:]", "0-9a-fA-F"}};
    for (auto [name, meaning] : kClasses)
      if (in_.substr(at_, name.size()) == name) {
        out_ += meaning;
        at_ += name.size();
        return;
      }
    place_.fail("a class inside a character class is not supported in '{}'", shown(in_));
  }

  void group() {
    size_t end = at_ + 2;
    while (end < in_.size() && ((in_[end] >= 'a' && in_[end] <= 'z') || in_[end] == '-')) ++end;
    bool flags = end > at_ + 2 && end < in_.size() && (in_[end] == ':' || in_[end] == ')');
    if (!flags) {
      out_ += "(?";
      at_ += 2;
      return;
    }
    out_ += "(?";
    for (char c : in_.substr(at_ + 2, end - at_ - 2)) {
      place_.check(c == 'i' || c == 'm' || c == '-', "option '{}' is not supported in '{}'", c, shown(in_));
      out_ += c == 'm' ? 's' : c;  // Oniguruma's m: the dot matches a line feed
    }
    at_ = end;
  }

  void interval() {
    size_t end = at_ + 1;
    while (end < in_.size() && ((in_[end] >= '0' && in_[end] <= '9') || in_[end] == ',')) ++end;
    if (end == in_.size() || in_[end] != '}') {
      out_ += in_[at_++];
      return;
    }
    std::string_view body = in_.substr(at_ + 1, end - at_ - 1);
    place_.check(end + 1 == in_.size() || in_[end + 1] != '+', "'+' after an interval is not supported in '{}'",
                 shown(in_));
    out_ += '{';
    if (!body.empty() && body[0] == ',') out_ += '0';
    (out_ += body) += '}';
    at_ = end + 1;
  }

  std::string_view in_;
  const Place& place_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  return pcre2_get_error_message(code, buffer, sizeof buffer) > 0 ? reinterpret_cast<const char*>(buffer)
                                                                  : "unknown error";
}

constexpr size_t kMaxPattern = 1 << 16;
constexpr size_t kJitStackStart = 1 << 15, kJitStackEnd = 64 << 20;
}  // namespace

std::string to_pcre2(std::string_view onig, const Place& place) {
  return Translator(onig, place).run();
}

Regex::Regex(std::string_view pattern, const Place& place) : pattern_(pattern) {
  place.check(pattern.size() <= kMaxPattern, "pattern must have at most {} bytes, got {}", kMaxPattern, pattern.size());
  std::string text = to_pcre2(pattern, place);
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  auto* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  place.check(code != nullptr, "pattern '{}' does not compile: {}", shown(pattern), pcre2_message(error));
  code_ = std::shared_ptr<void>(code, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT the interpreter runs it, with the same result
}

Regex::Search::Search(const Regex& regex) : regex_(regex) {
  data_ = pcre2_match_data_create(1, nullptr);
  if (!data_) throw std::bad_alloc();
}

Regex::Search::~Search() {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(data_));
  pcre2_match_context_free(static_cast<pcre2_match_context*>(context_));
  pcre2_jit_stack_free(static_cast<pcre2_jit_stack*>(stack_));
}

void Regex::Search::start(std::string_view text) {
  text_ = text;
  from_ = 0;
  after_match_ = false;
}

int Regex::Search::match(size_t from) {
  // The text was checked once, when it came in: checking it at every match would make a long text quadratic.
  auto run = [&] {
    return pcre2_match(static_cast<pcre2_code*>(regex_.code_.get()), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                       text_.size(), from, PCRE2_NO_UTF_CHECK, static_cast<pcre2_match_data*>(data_),
                       static_cast<pcre2_match_context*>(context_));
  };
  int rc = run();
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !stack_) {
    auto* context = pcre2_match_context_create(nullptr);
    context_ = context;
    auto* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackEnd, nullptr);
    stack_ = stack;
    if (!context || !stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(context, nullptr, stack);
    rc = run();
  }
  return rc;
}

bool Regex::Search::next(size_t& begin, size_t& end) {
  while (from_ <= text_.size()) {
    int rc = match(from_);
    if (rc == PCRE2_ERROR_NOMATCH) return false;
    check(rc >= 0, "regex: pattern '{}' gave up on a text of {} bytes: {}", shown(regex_.pattern_), text_.size(),
          pcre2_message(rc));
    const size_t* range = pcre2_get_ovector_pointer(static_cast<pcre2_match_data*>(data_));
    begin = range[0];
    end = range[1];
    check(begin >= from_ && end >= begin, "regex: pattern '{}' matches backwards", shown(regex_.pattern_));
    if (begin == end && after_match_ && begin == from_) {  // an empty match right behind a match is none
      from_ += from_ < text_.size() ? utf8_step(text_, from_).length : 1;
      after_match_ = false;
      continue;
    }
    from_ = end;
    after_match_ = true;
    return true;
  }
  return false;
}

std::string Regex::replace_all(std::string_view text, std::string_view with) const {
  std::string out;
  size_t done = 0;
  Search(*this).for_each_match(text, [&](size_t begin, size_t end) {
    out.append(text.substr(done, begin - done)).append(with);
    done = end;
  });
  return out.append(text.substr(done));
}

}  // namespace strata::text
