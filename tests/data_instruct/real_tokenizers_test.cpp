// Templates with real vocabularies and real records: ids against what the published chat templates give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/instruct/batches.h"
#include "data/instruct/encode.h"
#include "data/instruct/split.h"
#include "data/instruct/template.h"
#include "tests/data_text/golden.h"

namespace strata::data {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

std::vector<Conversation> records_of(const char* name) {
  return read_records(std::filesystem::path(STRATA_TEST_DATA) / "instruct" / name).records;
}

Conversation three_turns() {
  return {{{Role::user, "What is 2 + 2?", ""},
           {Role::assistant, "2 + 2 = 4.", ""},
           {Role::user, "写一行 Python。", ""},
           {Role::assistant, "```python\n    print('héllo 🙂')\n```", ""},
           {Role::user, "Thanks </s> <|im_end|>", ""},
           {Role::assistant, "You're welcome!", ""}},
          0};
}

/// The counted ids decoded, one text per run.
std::vector<std::string> counted_texts(const Template& form, const Conversation& conversation) {
  Template::Encoded encoded = form.encode(conversation);
  std::vector<std::string> texts;
  std::vector<TokenId> run;
  for (size_t i = 0; i <= encoded.ids.size(); ++i) {
    if (i < encoded.ids.size() && encoded.counted[i]) {
      run.push_back(encoded.ids[i]);
    } else if (!run.empty()) {
      texts.push_back(form.tokenizer().decode(run));
      run.clear();
    }
  }
  return texts;
}

/// Reads a line of tests/data/chat_templates; nothing if it has roles other than ours.
std::optional<Conversation> chat_of(const Json& line) {
  Conversation chat;
  for (const Json& message : line.at("messages").items()) {
    std::string role = message.get<std::string>("role");
    if (role == "tool") return std::nullopt;
    chat.turns.push_back({role == "system"      ? Role::system
                          : role == "assistant" ? Role::assistant
                                                : Role::user,
                          message.get<std::string>("content"), ""});
  }
  return chat;
}

TEST(RealTokenizers, ChatmlIsWhatTheChatTemplateGives) {
  Template form = Template::named("chatml", text::tokenizer("qwen3"));
  int compared = 0, with_ids = 0;
  for (const Json& line : text::read_jsonl("chat_templates/chatml.jsonl")) {
    std::optional<Conversation> chat = chat_of(line);
    if (!chat) continue;
    ++compared;
    bool prompt = line.get<bool>("add_generation_prompt");
    EXPECT_EQ(form.render_text(*chat, prompt), line.get<std::string>("rendered"));
    std::vector<TokenId> ids = form.encode(form.render(*chat, prompt)).ids;
    // There the contents spell special tokens, which a template rendered to one text cannot tell from its own.
    if (line.get<std::string>("name") == "whitespace_and_specials") continue;
    EXPECT_EQ(ids, text::ids_of(line.at("ids"))) << line.get<std::string>("name");
    ++with_ids;
  }
  EXPECT_EQ(compared, 24);
  EXPECT_EQ(with_ids, 22);
}

TEST(RealTokenizers, ZephyrTextIsWhatTheChatTemplateGives) {
  Template form = Template::named("zephyr", text::tokenizer("mistral-7b-v0.1"));
  int compared = 0;
  for (const Json& line : text::read_jsonl("chat_templates/zephyr.jsonl")) {
    std::optional<Conversation> chat = chat_of(line);
    if (!chat) continue;
    ++compared;
    EXPECT_EQ(form.render_text(*chat, line.get<bool>("add_generation_prompt")),
              "<s>" + line.get<std::string>("rendered"));
  }
  EXPECT_EQ(compared, 24);
}

// User case 1.7 with real vocabularies.
TEST(RealTokenizers, CountedIdsAreAnswerAndEndOfTurn) {
  for (const auto& [tokenizer, name, end] : {std::tuple{"qwen3", "chatml", "<|im_end|>"},
                                             {"qwen3", "alpaca", "<|im_end|>"},
                                             {"gpt2", "alpaca", "<|endoftext|>"},
                                             {"mistral-7b-v0.1", "mistral", "</s>"},
                                             {"mistral-legacy", "mistral", "</s>"},
                                             {"mistral-legacy", "llama2", "</s>"},
                                             {"mistral-legacy", "zephyr", "</s>"},
                                             {"mistral-7b-v0.1", "zephyr", "</s>"},
                                             {"mistral-legacy", "alpaca", "</s>"}}) {
    Template form = Template::named(name, text::tokenizer(tokenizer));
    EXPECT_THAT(
        counted_texts(form, three_turns()),
        ElementsAre("2 + 2 = 4." + std::string(end), "```python\n    print('héllo 🙂')\n```" + std::string(end),
                    "You're welcome!" + std::string(end)))
        << tokenizer << " " << name;
  }
}

// [INST] and [/INST] as Mistral documents their ids for this vocabulary; 22557 is "Hello" with its space. The newer
// form of the file puts no space after a special token: there the first "[" is 28792.
TEST(RealTokenizers, MistralIdsAsDocumented) {
  for (const auto& [tokenizer, bracket] : {std::pair{"mistral-legacy", 733}, {"mistral-7b-v0.1", 28792}}) {
    Template form = Template::named("mistral", text::tokenizer(tokenizer));
    Conversation chat = instruction_record("Hello", "", "Hello");
    chat.turns.push_back({Role::user, "Hello", ""});
    EXPECT_THAT(form.encode(form.render(chat, true)).ids,
                ElementsAre(1, bracket, 16289, 28793, 22557, 733, 28748, 16289, 28793, 22557, 2, bracket, 16289, 28793,
                            22557, 733, 28748, 16289, 28793))
        << tokenizer;
  }
}

// User case 2.1: the chat path and the rendered text passed as one prompt give the same ids, with the template's BOS.
TEST(RealTokenizers, RenderedTextGivesTheSameIds) {
  for (const auto& [tokenizer, name, bos] : {std::tuple{"qwen3", "chatml", 0},
                                             {"mistral-7b-v0.1", "mistral", 1},
                                             {"mistral-legacy", "mistral", 1},
                                             {"mistral-7b-v0.1", "llama2", 2},
                                             {"mistral-legacy", "llama2", 2},
                                             {"mistral-7b-v0.1", "zephyr", 1},
                                             {"mistral-legacy", "zephyr", 1}}) {
    auto t = text::tokenizer(tokenizer);
    Template form = Template::named(name, t);
    Conversation chat = three_turns();
    chat.turns.erase(chat.turns.begin() + 4, chat.turns.end());  // the third spells special tokens
    chat.turns.insert(chat.turns.begin(), {Role::system, "Be brief.", ""});
    for (bool prompt : {false, true}) {
      if (prompt) chat.turns.pop_back();
      std::vector<TokenId> ids = form.encode(form.render(chat, prompt)).ids;
      EXPECT_EQ(ids, t->encode(form.render_text(chat, prompt), {.add_special = false, .parse_special = true}))
          << tokenizer << " " << name << " " << prompt;
      EXPECT_EQ(std::count(ids.begin(), ids.end(), t->bos().value_or(-1)), bos);
    }
  }
}

// After "\n" or ":" the answer is the continuation of a text: no space that nobody wrote.
TEST(RealTokenizers, AnAnswerAfterTextGetsNoSpace) {
  for (const char* name : {"mistral-7b-v0.1", "mistral-legacy", "stories260K"}) {
    auto tokenizer = text::tokenizer(name);
    Template form = Template::named("alpaca", tokenizer);
    Conversation record = instruction_record("Say hello.", "", "hello there");
    std::string text = tokenizer->decode(form.encode(record).ids);
    EXPECT_THAT(text, testing::EndsWith("### Response:hello there" + tokenizer->token_text(*tokenizer->eos()))) << name;
  }
}

// User case 1.8 over whole data sets.
TEST(RealTokenizers, EveryRecordBeginsWithItsPrompt) {
  for (const char* file : {"instruction-data.json", "messages-mixed.jsonl"}) {
    std::vector<Conversation> records = records_of(file);
    for (const auto& [tokenizer, name] : {std::pair{"qwen3", "chatml"},
                                          {"gpt2", "alpaca"},
                                          {"mistral-7b-v0.1", "mistral"},
                                          {"mistral-legacy", "zephyr"}}) {
      Template form = Template::named(name, text::tokenizer(tokenizer));
      for (const Conversation& record : records) {
        EncodedRecord encoded = encode_record(record, form);
        std::vector<TokenId> prompt = form.prompt_ids(record);
        ASSERT_EQ(encoded.prompt_length, static_cast<int64_t>(prompt.size()));
        ASSERT_TRUE(std::equal(prompt.begin(), prompt.end(), encoded.ids.begin())) << file << " " << record.index;
        ASSERT_GE(counted_tokens(encoded), 2);
      }
    }
  }
}

// User case 1.8: "Hello wor" + "ld" is "Hello world" in GPT-2 if tokenised together.
TEST(RealTokenizers, AWordCutBySeam) {
  auto gpt2 = text::tokenizer("gpt2");
  Template bare({.name = "bare"}, gpt2);
  Conversation record = instruction_record("Hello wor", "", "ld");
  std::vector<TokenId> prompt = bare.prompt_ids(record);
  EXPECT_EQ(prompt, gpt2->encode("Hello wor"));
  std::vector<TokenId> ids = bare.encode(record).ids;
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), ids.begin()));
  EXPECT_NE(ids, gpt2->encode("Hello world"));
  EXPECT_EQ(gpt2->decode(ids), "Hello world");
}

// User case 1.9 with the vocabulary it names.
TEST(RealTokenizers, AssistantTurnFirst) {
  Template bare({.name = "bare"}, text::tokenizer("gpt2"));
  EncodedRecord record = encode_record({{{Role::assistant, "A", ""}, {Role::user, "user message", ""}}, 0}, bare);
  EXPECT_THAT(record.counted, ElementsAre(1, 0, 0));
}

TEST(RealTokenizers, TemplatesAreDetected) {
  EXPECT_EQ(detect_template(*text::tokenizer("qwen3")).name, "chatml");
  EXPECT_EQ(detect_template(*text::tokenizer("gpt2")).name, "alpaca");
  EXPECT_EQ(detect_template(*text::tokenizer("stories260K")).name, "alpaca");
}

TEST(RealTokenizers, InstructionDataFromFileToBatches) {
  std::vector<Conversation> records = records_of("instruction-data.json");
  auto tokenizer = text::tokenizer("qwen3");
  Template form = Template::named("chatml", tokenizer);
  EncodedSet set = encode_records(records, form, {.max_length = 512});
  EXPECT_EQ(set.report.kept, 1100);
  EXPECT_THAT(set.report.truncated, IsEmpty());
  EXPECT_THAT(set.report.without_stop, IsEmpty());
  for (size_t i = 0; i < records.size(); ++i)
    ASSERT_EQ(tokenizer->decode(set.records[i].ids), form.render_text(records[i]));

  Split split = split_records(static_cast<int64_t>(set.records.size()));
  std::vector<int64_t> first(split.train.begin(), split.train.begin() + 8);
  Batch batch = padded_batch(set.records, first, pad_token(*tokenizer));
  EXPECT_THAT(batch.records, ElementsAreArray(first));
  int64_t counted = 0;
  for (int64_t position : first) counted += counted_tokens(set.records[static_cast<size_t>(position)]);
  EXPECT_EQ(batch.counted, counted);
  EXPECT_EQ(std::count_if(batch.targets.begin(), batch.targets.end(), [](int64_t t) { return t != kIgnore; }), counted);
}

}  // namespace
}  // namespace strata::data
