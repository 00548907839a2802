// Merging, against the definition taken literally.
#include "data/text/bpe.h"

#include <gtest/gtest.h>

#include <random>

#include "data/text/added_tokens.h"
#include "tests/data_text/build.h"
#include "tests/data_text/golden.h"

namespace strata::text {
namespace {

using Ids = std::vector<TokenId>;

// Join the leftmost pair of lowest rank until there is none.
Ids merge_by_definition(Ids ids, const std::vector<Merge>& merges) {
  for (;;) {
    const Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      for (const Merge& m : merges)
        if (m.left == ids[i] && m.right == ids[i + 1] && (!best || m.rank < best->rank)) {
          best = &m;
          at = i;
        }
    if (!best) return ids;
    ids[at] = best->result;
    ids.erase(ids.begin() + static_cast<long>(at) + 1);
  }
}

TEST(Bpe, ShortAndLongPiecesFollowTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    auto vocabulary = std::make_shared<Vocabulary>();
    Place place{"test", "vocab"};
    std::vector<std::string> texts{"a", "b", "c"};
    for (size_t i = 0; i < texts.size(); ++i) vocabulary->add(static_cast<TokenId>(i), texts[i], place);
    std::vector<Merge> merges;
    for (uint32_t rank = 0; rank < 25; ++rank) {
      auto left = static_cast<TokenId>(random() % texts.size()), right = static_cast<TokenId>(random() % texts.size());
      std::string joined = texts[static_cast<size_t>(left)] + texts[static_cast<size_t>(right)];
      bool twice =
          std::any_of(merges.begin(), merges.end(), [&](const Merge& m) { return m.left == left && m.right == right; });
      if (joined.size() > 12 || twice) continue;
      auto known = vocabulary->find(joined);
      if (!known) {
        vocabulary->add(static_cast<TokenId>(texts.size()), joined, place);
        texts.push_back(joined);
      }
      merges.push_back({left, right, *vocabulary->find(joined), rank / 2});  // some ranks are shared
    }
    Bpe bpe(vocabulary, merges, {}, std::vector<bool>(texts.size(), true));
    Bpe::Scratch scratch;
    for (size_t length : {0, 1, 2, 5, 20, 47, 48, 49, 50, 130, 200}) {
      Ids ids;
      std::string word;
      for (size_t i = 0; i < length; ++i) {
        ids.push_back(static_cast<TokenId>(random() % 3));
        word += static_cast<char>('a' + ids.back());
      }
      Ids out;
      bpe.encode(word, out, scratch);
      EXPECT_EQ(out, merge_by_definition(ids, merges)) << word;
    }
  }
}

TEST(Bpe, MillionCharactersWithoutASplit) {
  std::vector<std::string> tokens{"a"};
  std::vector<std::pair<std::string, std::string>> merges;
  for (int i = 0; i < 10; ++i) {
    merges.emplace_back(tokens.back(), tokens.back());
    tokens.push_back(tokens.back() + tokens.back());
  }
  auto t = Tokenizer::from_json(bpe_json(tokens, merges));
  EXPECT_EQ(t->encode(std::string(1 << 20, 'a')), Ids(1024, 10));
}

TEST(Bpe, UnknownCharacters) {
  Json json = bpe_json({"<unk>", "a"}, {}), model = json.at("model");
  auto with = [&](const Json& unk, bool fuse) {
    model.set("unk_token", unk).set("fuse_unk", fuse);
    return Tokenizer::from_json(json.set("model", model));
  };
  EXPECT_EQ(with("<unk>", false)->encode("axya"), (Ids{1, 0, 0, 1}));
  EXPECT_EQ(with("<unk>", true)->encode("axya"), (Ids{1, 0, 1}));
  EXPECT_EQ(with(Json(), true)->encode("axya"), (Ids{1, 1}));
}

TEST(Bpe, IgnoreMergesTakesWholePieces) {
  Json json = bpe_json({"a", "b", "c", "ab", "abc"}, {{"a", "b"}}), model = json.at("model");
  EXPECT_EQ(Tokenizer::from_json(json)->encode("abc"), (Ids{3, 2}));
  EXPECT_EQ(Tokenizer::from_json(json.set("model", model.set("ignore_merges", true)))->encode("abc"), Ids{4});
}

TEST(Bpe, WordsOfASentencePieceTextDoNotChangeItsIds) {
  // The cut before U+2581 is only made where no token crosses it. "x▁" crosses it here.
  std::string blank = "\u2581";
  std::vector<std::pair<std::string, std::string>> merges{{"x", blank}};
  Json space = Json::parse(R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})", "t");
  auto crossing = Tokenizer::from_json(bpe_json({"x", blank, "x" + blank}, merges).set("normalizer", space));
  EXPECT_EQ(crossing->encode("x x x"), (Ids{2, 2, 0}));
  // A character that vanishes brings two blanks together.
  auto vanishing =
      Tokenizer::from_json(bpe_json({"x", blank, blank + blank}, {{blank, blank}}).set("normalizer", space));
  EXPECT_EQ(vanishing->encode("x ? x"), (Ids{0, 2, 0}));
}

TEST(AddedTokens, LongestLeftmostAndWhiteSpace) {
  TokenFinder finder;
  auto add = [&](TokenId id, const char* text, AddedToken token = {}) {
    token.id = id;
    finder.add(token, text);
  };
  AddedToken left, right, word;
  left.lstrip = right.rstrip = word.single_word = true;
  add(1, "<a>");
  add(2, "<a><b>");
  add(3, "[L]", left);
  add(4, "[R]", right);
  add(5, "cat", word);
  auto split = [&](std::string_view text) {
    std::string out;
    for (const Section& s : finder.split(text))
      out += fmt::format("({}:{})", s.id, text.substr(s.begin, s.end - s.begin));
    return out;
  };
  EXPECT_EQ(split(""), "");
  EXPECT_EQ(split("x<a><b><a>y"), "(-1:x)(2:<a><b>)(1:<a>)(-1:y)");
  EXPECT_EQ(split("x<a><c"), "(-1:x)(1:<a>)(-1:<c)");
  EXPECT_EQ(split("x \u3000[L] y"), "(-1:x)(3: \u3000[L])(-1: y)");
  EXPECT_EQ(split("x [R]\u00a0\ny"), "(-1:x )(4:[R]\u00a0\n)(-1:y)");
  EXPECT_EQ(split("[R] [L]"), "(4:[R] )(3:[L])");
  EXPECT_EQ(split("cat concat cat\u0301 (cat)"), "(5:cat)(-1: concat cat\u0301 ()(5:cat)(-1:))");
}

}  // namespace
}  // namespace strata::text
