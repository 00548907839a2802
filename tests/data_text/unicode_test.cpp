#include "data/text/unicode.h"

#include <gtest/gtest.h>

#include <random>

#include "data/text/byte_alphabet.h"

namespace strata::text {
namespace {

// Expected texts are Python's bytes.decode("utf-8", "replace").
TEST(Utf8, ReplacesEachMaximalRun) {
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x98"
                                 "b"),
            "a\uFFFDb");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x98"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\x80\x81"), "\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(replace_invalid_utf8("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\xE2\x98\x83"), "\uFFFD\u2603");
  EXPECT_EQ(replace_invalid_utf8(std::string_view("\0\xFF", 2)), std::string_view("\0\uFFFD", 4));
}

TEST(Utf8, EveryCharacterGoesThere) {
  for (char32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 37) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    Utf8Step step = utf8_step(text, 0);
    ASSERT_TRUE(step.kind == Utf8::valid && step.length == text.size() && step.code == code) << uint32_t{code};
  }
}

TEST(Utf8, DecidedPartsAndRestsAddUp) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes, held, out;
    for (int i = 0; i < 12; ++i) bytes += "\x41\x80\xBF\xC3\xE2\x98\x83\xF0\x9F\xED\xA0\xFF"[random() % 12];
    for (char c : bytes) {
      held += c;
      held.erase(0, append_decided(out, held));
      ASSERT_LE(held.size(), 3u);
    }
    ASSERT_EQ(out + replace_invalid_utf8(held), replace_invalid_utf8(bytes));
  }
}

TEST(Normalize, SortsAMegabyteOfMarksInTime) {
  std::string marks = "a";
  for (int i = 0; i < 250000; ++i) marks += i % 2 ? "\u0323" : "\u0301";  // class 220 behind class 230, each time
  std::string sorted = normalize(marks, NormalForm::nfc);
  EXPECT_EQ(sorted.substr(0, 5), "\u1EA1\u0323");  // a with dot below, then the other dots below
  EXPECT_EQ(sorted.substr(sorted.size() - 2), "\u0301");
}

TEST(ByteAlphabet, IsGpt2s) {
  std::string all;
  for (int b = 0; b < 256; ++b) {
    std::string spelled, byte(1, static_cast<char>(b));
    append_spelled(spelled, byte);
    EXPECT_EQ(spelled_bytes(spelled), byte);
    all += spelled;
  }
  EXPECT_EQ(all.substr(all.find("!"), 3), "!\"#");
  std::string some;
  append_spelled(some, std::string_view(" \n\0\x7F\xA0\xAD\xFF", 7));
  EXPECT_EQ(some, "ĠĊĀġłŃÿ");
  EXPECT_EQ(spelled_bytes("世"), "世");  // not in the alphabet: itself
}

}  // namespace
}  // namespace strata::text
