#include "data/text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/error.h"

namespace strata::text {
namespace {

const Place kHere{"t.json", "pattern"};

std::string matches(const char* pattern, std::string_view text) {
  Regex regex(pattern, kHere);
  Regex::Search search(regex);
  std::string out;
  search.for_each_match(
      text, [&](size_t begin, size_t end) { out.append("[").append(text.substr(begin, end - begin)).append("]"); });
  return out;
}

std::string error_of(const std::string& pattern) {
  try {
    Regex regex(pattern, kHere);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Regex, MeansWhatOnigurumaMeans) {
  EXPECT_EQ(matches(R"(\s+)", "a\u180E \u0085\u00A0b"), "[ \u0085\u00A0]");  // U+180E is no white space
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \n\tb"), "[ ][\t]");
  EXPECT_EQ(matches(R"(\w+)", "e\u0301x \u24B6 \u00B2 -"), "[e\u0301x][\u24B6][\u00B2]");
  EXPECT_EQ(matches(R"(\W+)", "a-+b"), "[-+]");
  EXPECT_EQ(matches(R"(\bis\b)", "this is e\u0301is"), "[is]");
  EXPECT_EQ(matches(R"(a{,2})", "aaa"), "[aa][a]");
  EXPECT_EQ(matches(R"(.)", "a\nb"), "[a][b]");
  EXPECT_EQ(matches(R"((?m:.))", "a\nb"), "[a][\n][b]");
  EXPECT_EQ(matches(R"(^a$)", "a\na"), "[a][a]");
  EXPECT_EQ(matches(R"((?i:'s))", "'S'\u017F's"), "['S]['\u017F]['s]");
  EXPECT_EQ(matches(R"(\p{N}{1,3})", "1234"), "[123][4]");
  EXPECT_EQ(matches(R"([[:alpha:]_]+)", "ab_1"), "[ab_]");
  EXPECT_EQ(matches(R"([]a]+)", "]a["), "[]a]");
  EXPECT_EQ(matches(R"(\h+)", "xfFg0"), "[fF][0]");
  EXPECT_EQ(matches(R"(a++b)", "aab"), "[aab]");
  EXPECT_EQ(matches(R"(a{2)", "a{2"), "[a{2]");
}

TEST(Regex, EmptyMatchesMoveOn) {
  EXPECT_EQ(matches("", "aé"), "[][][]");
  EXPECT_EQ(matches("a*", "aab"), "[aa][]");
  EXPECT_EQ(matches("(?=b)", "abab"), "[][]");
}

TEST(Regex, RefusesWhatItCannotSay) {
  EXPECT_EQ(error_of("[a&&b]"), "t.json: field 'pattern': '&&' in a character class is not supported in '[a&&b]'");
  EXPECT_EQ(error_of("[a[b]]"),
            "t.json: field 'pattern': a class inside a character class is not supported in '[a[b]]'");
  EXPECT_EQ(error_of(R"([\W])"), "t.json: field 'pattern': \\W inside a character class is not supported in '[\\W]'");
  EXPECT_EQ(error_of("a{1,3}+"), "t.json: field 'pattern': '+' after an interval is not supported in 'a{1,3}+'");
  EXPECT_EQ(error_of("(?x:a)"), "t.json: field 'pattern': option 'x' is not supported in '(?x:a)'");
  EXPECT_EQ(error_of("a\\"), "t.json: field 'pattern': pattern ends with a backslash: 'a\\'");
  EXPECT_EQ(error_of("[a"), "t.json: field 'pattern': character class without ']' in '[a'");
  EXPECT_EQ(error_of(R"(\X)"), "t.json: field 'pattern': escape \\X is not supported in '\\X'");
  EXPECT_EQ(error_of(std::string(70000, 'a')),
            "t.json: field 'pattern': pattern must have at most 65536 bytes, got 70000");
  EXPECT_THAT(error_of(R"(\p{Nonsense})"),
              testing::StartsWith("t.json: field 'pattern': pattern '\\p{Nonsense}' does not compile: "));
}

TEST(Regex, GivesUpInsteadOfHanging) {
  Regex regex("(a+)+[bc]", kHere);
  Regex::Search search(regex);
  EXPECT_THROW(search.for_each_match(std::string(60, 'a'), [](size_t, size_t) {}), Error);
}

TEST(Regex, DeepRepetitionsGetAStack) {
  std::string text(200000, 'a');
  size_t length = 0;
  Regex regex("(?:a|b)+", kHere);
  Regex::Search search(regex);
  search.for_each_match(text, [&](size_t begin, size_t end) { length += end - begin; });
  EXPECT_EQ(length, text.size());
}

TEST(Regex, ReplacesLiterally) {
  EXPECT_EQ(Regex(" {2,}", kHere).replace_all("a  b   c d", "$0\\1"), "a$0\\1b$0\\1c d");
}

}  // namespace
}  // namespace strata::text
