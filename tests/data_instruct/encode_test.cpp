#include "data/instruct/encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/error.h"
#include "tests/data_instruct/fake_tokenizer.h"

namespace strata::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Template chatml() {
  return Template::named("chatml", fake_tokenizer(chatml_vocabulary()));
}

/// No markup at all: a turn is its text.
Template bare(FakeVocabulary v = {}) {
  return Template({.name = "bare"}, fake_tokenizer(std::move(v)));
}

std::string error_of(std::span<const Conversation> records, const Template& form, const EncodeSettings& settings = {}) {
  try {
    encode_records(records, form, settings);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Encode, RecordIsPromptAnswerEnd) {
  EncodedRecord record = encode_record(instruction_record("Hello", "", "The", 7), chatml());
  auto form = chatml();
  std::vector<std::string> tokens;
  for (TokenId id : record.ids) tokens.push_back(form.tokenizer().token_text(id));
  EXPECT_THAT(tokens, ElementsAre("<|im_start|>", "user", "\n", "Hello", "<|im_end|>", "\n", "<|im_start|>",
                                  "assistant", "\n", "The", "<|im_end|>", "\n"));
  EXPECT_THAT(record.counted, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0));
  EXPECT_EQ(record.prompt_length, 9);
  EXPECT_EQ(record.index, 7);
  EXPECT_EQ(counted_tokens(record), 2);
}

TEST(Encode, PromptLengthIsThePromptOfTheLastAnswer) {
  Conversation chat{
      {{Role::user, "a", ""}, {Role::assistant, "b", ""}, {Role::user, "c", ""}, {Role::assistant, "d", ""}}, 0};
  EncodedRecord record = encode_record(chat, chatml());
  EXPECT_EQ(record.prompt_length, static_cast<int64_t>(chatml().prompt_ids(chat).size()));
  EXPECT_EQ(counted_tokens(record), 4);
}

// User case 1.9: an assistant turn before the user's; the mask has one 1, at index 0.
TEST(Encode, AnswerBeforeAnyPrompt) {
  Conversation chat{{{Role::assistant, "A", ""}, {Role::user, "user message", ""}}, 3};
  EncodedRecord record = encode_record(chat, bare({.words = {"user", " message"},
                                                   .specials = {},
                                                   .bos = {},
                                                   .eos = {},
                                                   .pad = {},
                                                   .strip_right = {},
                                                   .chat_template = {}}));
  EXPECT_THAT(record.counted, ElementsAre(1, 0, 0));
  EXPECT_EQ(counted_tokens(record), 0);  // nothing precedes it, so no loss can count it
  try {
    encode_record({{{Role::assistant, "A", ""}}, 3}, bare());
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_STREQ(e.what(), "template bare: every token of record 3 is counted, so there is no prompt");
  }
}

TEST(Encode, ACutInsideAnAnswerKeepsWhatIsBeforeIt) {
  std::vector<Conversation> records = {instruction_record("Hello", "", "abcdef")};  // 9 prompt, 6 + 1 counted, 1
  EncodedSet set = encode_records(records, chatml(), {.max_length = 12});
  EXPECT_EQ(set.records[0].length(), 12);
  EXPECT_THAT(set.records[0].counted, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_TRUE(set.records[0].truncated);
  EXPECT_THAT(set.report.truncated, ElementsAre(0));
  EXPECT_THAT(set.report.without_stop, IsEmpty());  // it is named once, as cut
}

TEST(Encode, PoliciesForLongRecords) {
  std::vector<Conversation> records = {
      instruction_record("Hello", "", "ab", 0),                        // 13 tokens
      instruction_record("Hello", "", "abcdefgh", 1),                  // 19
      instruction_record("Hello Hello Hello Hello Hello", "", "x", 2)  // 20, prompt of 17
  };
  EncodedSet cut = encode_records(records, chatml(), {.max_length = 14, .too_long = TooLong::truncate});
  EXPECT_EQ(cut.report.kept, 2);
  EXPECT_THAT(cut.report.truncated, ElementsAre(1));
  EXPECT_THAT(cut.report.uncounted, ElementsAre(2));  // cutting would leave prompt only
  EXPECT_EQ(cut.report.lengths.max, 14);

  EncodedSet skipped = encode_records(records, chatml(), {.max_length = 14, .too_long = TooLong::skip});
  EXPECT_EQ(skipped.report.kept, 1);
  EXPECT_THAT(skipped.report.too_long, ElementsAre(1, 2));

  EXPECT_EQ(error_of(records, chatml(), {.max_length = 14, .too_long = TooLong::error}),
            "encode_records: 2 records are longer than the maximum of 14 tokens: 1, 2");
  EXPECT_EQ(encode_records(records, chatml()).report.kept, 3);
  EXPECT_EQ(error_of(records, chatml(), {.max_length = 20, .too_long = TooLong::error}), "no error");
  EXPECT_THAT(error_of(records, chatml(), {.max_length = 1}), HasSubstr("max_length must be at least 2"));
  EXPECT_THAT(error_of(records, chatml(), {.max_length = -5}), HasSubstr("got -5"));
}

// User case 1.5: records without a counted token are named, and a set of nothing else is refused with a look at one.
TEST(Encode, MaskedRecordsAreNamed) {
  std::vector<Conversation> records = {instruction_record("a", "", "b", 0),
                                       {{{Role::user, "only a question", ""}}, 1},
                                       instruction_record("c", "", "d", 2),
                                       {{{Role::user, "x", ""}}, 3}};
  EncodedSet set = encode_records(records, chatml());
  EXPECT_EQ(set.report.kept, 2);
  EXPECT_THAT(set.report.uncounted, ElementsAre(1, 3));
  EXPECT_THAT(set.report.text(), HasSubstr("warning: 2 records left out, no token of them would be counted: 1, 3\n"));

  EXPECT_EQ(
      error_of(std::span(records).subspan(1, 1), chatml()),
      "encode_records: none of 1 records can be trained on: 1 without a counted token. A record as the model would "
      "see it, counted tokens in ⟦⟧:\n<|im_start|>user\nonly a question<|im_end|>\n");
  EXPECT_THAT(error_of(records, chatml(), {.max_length = 8}), HasSubstr("4 without a counted token"));
  EXPECT_THAT(error_of({}, chatml()), HasSubstr("none of 0 records"));
}

TEST(Encode, ConversationsThatDoNotFitTheTemplate) {
  FakeVocabulary v{.words = {},
                   .specials = {"<s>", "</s>"},
                   .bos = "<s>",
                   .eos = "</s>",
                   .pad = {},
                   .strip_right = {},
                   .chat_template = {}};
  Template form = Template::named("mistral", fake_tokenizer(v));
  std::vector<Conversation> records = {instruction_record("a", "", "b", 0), {{{Role::assistant, "b", ""}}, 1}};
  EncodedSet set = encode_records(records, form);
  EXPECT_THAT(set.report.not_fitting, ElementsAre(1));
  EXPECT_THAT(set.report.text(), HasSubstr("turns must alternate user and assistant"));
}

// User case 1.10, second half: an answer without its end is noticed.
TEST(Encode, WarnsIfTheLastCountedTokenDoesNotStop) {
  TemplateSpec spec{.name = "endless", .user_before = {{"Q: "}}, .assistant_before = {{"\nA:"}}};
  std::vector<Conversation> records = {instruction_record("a", "", "b", 0), instruction_record("a", "", "c", 5)};
  EncodedSet endless = encode_records(records, Template(spec, fake_tokenizer(chatml_vocabulary())));
  EXPECT_THAT(endless.report.without_stop, ElementsAre(0, 5));
  EXPECT_THAT(endless.report.text(), HasSubstr("end with a counted token that does not stop generation: 0, 5"));
  EXPECT_THAT(encode_records(records, chatml()).report.without_stop, IsEmpty());
}

TEST(Encode, Statistics) {
  std::vector<int64_t> lengths;
  for (int64_t i = 20; i >= 1; --i) lengths.push_back(i);
  LengthStats stats = length_stats(lengths);
  EXPECT_EQ(stats.count, 20);
  EXPECT_EQ(stats.min, 1);
  EXPECT_EQ(stats.median, 10);  // nearest rank: the 10th of 20
  EXPECT_EQ(stats.p95, 19);
  EXPECT_EQ(stats.max, 20);
  EXPECT_EQ(stats.total, 210);
  EXPECT_EQ(length_stats({7}).p95, 7);
  EXPECT_EQ(length_stats({}).count, 0);
}

TEST(Encode, DescribeShowsTheMask) {
  Conversation chat{{{Role::user, "Hello", ""},
                     {Role::assistant, "The world", ""},
                     {Role::user, "?", ""},
                     {Role::assistant, "!", ""}},
                    0};
  Template form = chatml();
  EXPECT_EQ(describe_record(encode_record(chat, form), form.tokenizer(), "[[", "]]"),
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n[[The world<|im_end|>]]\n<|im_start|>user\n?"
            "<|im_end|>\n<|im_start|>assistant\n[[!<|im_end|>]]\n");
  FakeVocabulary v{.words = {" A"},
                   .specials = {"<s>", "</s>"},
                   .bos = "<s>",
                   .eos = "</s>",
                   .pad = {},
                   .space_first = true,
                   .strip_right = {},
                   .chat_template = {}};
  Template mistral = Template::named("mistral", fake_tokenizer(v));
  EXPECT_EQ(describe_record(encode_record(instruction_record("U", "", "A"), mistral), mistral.tokenizer(), "[[", "]]"),
            "<s> [INST] U [/INST][[ A</s>]]");
}

}  // namespace
}  // namespace strata::data
