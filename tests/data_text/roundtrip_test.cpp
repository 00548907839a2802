// Random text and random bytes.
#include <random>

#include "data/text/unicode.h"
#include "tests/data_text/golden.h"

namespace strata::text {
namespace {

std::string random_text(std::mt19937& random) {
  std::string text;
  for (size_t n = random() % 60; n > 0; --n) {
    uint32_t kind = random() % 4;
    char32_t code = kind == 0   ? random() % 0x80
                    : kind == 1 ? random() % 0x3100
                    : kind == 2 ? random() % 0x110000
                                : U" \n\r\t'sLl123\u0301\u200D\U0001F600\u4E16"[random() % 16];
    if (code >= 0xD800 && code < 0xE000) code = U'?';
    append_utf8(text, code);
  }
  return text;
}

TEST(RoundTrip, ByteLevelKeepsEveryText) {
  std::mt19937 random(11);
  for (const char* name : {"gpt2", "cl100k_base"}) {
    auto t = tokenizer(name);
    for (int i = 0; i < 3000; ++i) {
      std::string text = random_text(random);
      ASSERT_EQ(t->decode(t->encode(text)), text) << name;
    }
  }
  auto qwen = tokenizer("qwen3");
  for (int i = 0; i < 3000; ++i) {
    std::string text = random_text(random);
    ASSERT_EQ(qwen->decode(qwen->encode(text)), normalize(text, NormalForm::nfc));
  }
}

TEST(RoundTrip, SentencePieceKeepsTextThatHasNoLeadingSpace) {
  std::mt19937 random(12);
  for (const char* name : {"mistral-legacy", "stories260K"}) {
    auto t = tokenizer(name);
    for (int i = 0; i < 2000; ++i) {
      std::string text = "x" + random_text(random);
      if (text.find("\u2581") != std::string::npos) continue;  // would come back as a space
      ASSERT_EQ(t->decode(t->encode(text)), text) << name;
    }
  }
}

TEST(RoundTrip, InvalidBytesBecomeReplacementCharacters) {
  std::mt19937 random(13);
  for (const char* name : {"gpt2", "qwen3", "cl100k_base", "mistral-7b-v0.1", "mistral-legacy", "stories260K"}) {
    auto t = tokenizer(name);
    for (int i = 0; i < 1000; ++i) {
      std::string bytes;
      for (size_t n = random() % 40; n > 0; --n)
        bytes += static_cast<char>(random() % 5 ? 0x80 + random() % 0x80 : random());
      EncodeOptions options{.add_special = i % 2 == 0, .parse_special = i % 3 == 0};
      ASSERT_EQ(t->encode(bytes, options), t->encode(replace_invalid_utf8(bytes), options)) << name;
      for (TokenId id : t->encode(bytes, options)) ASSERT_TRUE(t->has_token(id));
    }
  }
}

TEST(RoundTrip, LongTextsEqualTheirLines) {
  // The cache of words, which only long texts use, must not change an id. Lines end where pieces end.
  std::string text;
  for (const Json& r : read_jsonl("tokenizers/gpt2/golden.jsonl")) text += r.get<std::string>("text") + "x\nx";
  auto t = tokenizer("gpt2");
  std::vector<TokenId> by_line;
  for (size_t i = 0; i < text.size();) {
    size_t end = std::min(text.find("x\nx", i), text.size() - 1) + 1;
    for (TokenId id : t->encode(std::string_view(text).substr(i, end - i))) by_line.push_back(id);
    i = end;
  }
  EXPECT_EQ(t->encode(text), by_line);
}

}  // namespace
}  // namespace strata::text
