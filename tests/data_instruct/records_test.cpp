#include "data/instruct/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tensor/error.h"

namespace strata::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ReadOptions kSkip{BadRecords::skip};

std::string error_of(std::string_view text, const ReadOptions& options = {}) {
  try {
    parse_records(text, "data.json", options);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no error";
}

std::filesystem::path data_file(const char* name) {
  return std::filesystem::path(STRATA_TEST_DATA) / "instruct" / name;
}

TEST(Records, EveryKindOfRecordBecomesTheSameConversation) {
  Turn user{Role::user, "Name a fruit.", ""}, assistant{Role::assistant, "Pear.", ""};
  for (const char* record : {
           R"({"instruction": "Name a fruit.", "input": "", "output": "Pear."})",
           R"({"instruction": "Name a fruit.", "output": "Pear."})",
           R"({"instruction": "Name a fruit.", "input": null, "output": "Pear."})",
           R"({"prompt": "Name a fruit.", "completion": "Pear."})",
           R"({"messages": [{"role": "user", "content": "Name a fruit."}, {"role": "assistant", "content": "Pear."}]})",
           R"({"conversations": [{"from": "human", "value": "Name a fruit."}, {"from": "gpt", "value": "Pear."}]})",
       }) {
    for (const std::string& text :
         {"[" + std::string(record) + "]", std::string(record), std::string(record) + "\r\n\n"}) {
      DataSet set = parse_records(text, "x");
      ASSERT_EQ(set.records.size(), 1u) << text;
      EXPECT_THAT(set.records[0].turns, ElementsAre(user, assistant)) << text;
      EXPECT_EQ(set.report.kept, 1);
      EXPECT_EQ(set.report.skipped, 0);
      EXPECT_TRUE(set.report.notes.empty());
    }
  }
}

TEST(Records, InputStaysApartAndSystemComesFirst) {
  DataSet set =
      parse_records(R"([{"instruction": "Add.", "input": "1 2", "output": "3", "system": "Be brief."}])", "x");
  EXPECT_THAT(set.records[0].turns, ElementsAre(Turn{Role::system, "Be brief.", ""}, Turn{Role::user, "Add.", "1 2"},
                                                Turn{Role::assistant, "3", ""}));
  EXPECT_EQ(set.records[0].turns[1].text(), "Add.\n\n1 2");
}

TEST(Records, WholeFileFaultsAreNamed) {
  EXPECT_EQ(error_of(""), "data.json: file is empty");
  EXPECT_EQ(error_of("\xEF\xBB\xBF \r\n\t"), "data.json: file is empty");
  EXPECT_EQ(error_of("[]"), "data.json: holds no records");
  EXPECT_EQ(error_of("{\n \"train\": [],\n \"test\": []\n}"),
            "data.json: must be an array of records or one record a line, got object (fields: train, test)");
  EXPECT_EQ(error_of("\"text\""), "data.json: must be an array of records or one record a line, got string");
  EXPECT_EQ(error_of("12"), "data.json: must be an array of records or one record a line, got integer");
  EXPECT_THAT(error_of("instruction,output\nhi,ho\n"), HasSubstr("data.json: not valid JSON at byte"));
  EXPECT_THAT(error_of("[{\"instruction\": \"a\", \"output\": \"b\"}"), HasSubstr("data.json: not valid JSON at byte"));
}

TEST(Records, EachFaultOfARecordNamesRecordAndField) {
  const std::string good = R"({"instruction": "a", "output": "b"})";
  auto in_array = [&](const std::string& bad) { return error_of("[" + good + ", " + bad + "]"); };
  const std::string head = "data.json: 1 of 2 records cannot be used (they can be skipped on request): record 1";
  EXPECT_EQ(in_array("7"), head + " must be an object, got integer");
  EXPECT_EQ(in_array(R"({"instruction": "a"})"), head + ": field 'output' is missing");
  EXPECT_EQ(in_array(R"({"instruction": "a", "output": null})"), head + ": field 'output' is missing");
  EXPECT_EQ(in_array(R"({"instruction": "a", "output": ""})"), head + ": field 'output' is empty");
  EXPECT_EQ(in_array(R"({"instruction": "a", "output": " \n"})"), head + ": field 'output' is empty");
  EXPECT_EQ(in_array(R"({"instruction": "a", "output": ["b"]})"),
            head + ": field 'output' must be a string, got array");
  EXPECT_EQ(in_array(R"({"instruction": 3, "output": "b"})"),
            head + ": field 'instruction' must be a string, got integer");
  EXPECT_EQ(in_array(R"({"instruction": " ", "input": "", "output": "b"})"), head + ": field 'instruction' is empty");
  EXPECT_EQ(in_array(R"({"instruction": "a", "input": {}, "output": "b"})"),
            head + ": field 'input' must be a string, got object");
  EXPECT_EQ(in_array(R"({"question": "a", "response": "b"})"),
            head +
                ": field 'instruction' is missing (nor is there prompt, messages or conversations; the record has: "
                "question, response)");
  EXPECT_EQ(in_array(R"({"prompt": "a", "completion": ""})"), head + ": field 'completion' is empty");
  EXPECT_EQ(in_array(R"({"messages": "a"})"), head + ": field 'messages' must be an array, got string");
  EXPECT_EQ(in_array(R"({"messages": []})"), head + ": field 'messages' holds no assistant turn");
  EXPECT_EQ(in_array(R"({"messages": [5]})"), head + ": field 'messages[0]' must be an object, got integer");
  EXPECT_EQ(in_array(R"({"messages": [{"role": "user"}]})"), head + ": field 'messages[0].content' is missing");
  EXPECT_EQ(in_array(R"({"messages": [{"role": "tool", "content": "x"}]})"),
            head + ": field 'messages[0].role' must be system, user or assistant, got 'tool'");
  EXPECT_EQ(in_array(R"({"messages": [{"role": "assistant", "content": ""}]})"),
            head + ": field 'messages[0].content' is empty");
  EXPECT_EQ(in_array(R"({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}]})"),
            head + ": field 'messages[1]' is a system turn that is not the first");
}

TEST(Records, LinesAreNamedInJsonl) {
  const std::string good = R"({"instruction": "a", "output": "b"})";
  EXPECT_EQ(error_of(good + "\n\n" + R"({"instruction": "a", "output": 4})" + "\n"),
            "data.json: 1 of 2 records cannot be used (they can be skipped on request): record 1 (line 3): field "
            "'output' must be a string, got integer");
  EXPECT_THAT(error_of(good + "\n{\"instruction\": \"a\", \n" + good),
              HasSubstr("record 1 (line 2) cannot be read: not valid JSON at byte"));
  EXPECT_THAT(error_of(good + "\n{\"instruction\": \"\xC3(\", \"output\": \"b\"}\n"),
              testing::AllOf(HasSubstr("record 1 (line 2) cannot be read"), HasSubstr("ill-formed UTF-8")));
  EXPECT_THAT(error_of(good + "\n{\"output\": \"a\", \"output\": \"b\"}\n"),
              HasSubstr("record 1 (line 2) cannot be read: field 'output' stands twice"));
  EXPECT_THAT(error_of("[{\"instruction\": \"\xFF\", \"output\": \"b\"}]"), HasSubstr("ill-formed UTF-8"));
  // A half character escape and a long broken line: the message stays short.
  EXPECT_THAT(error_of(R"([{"instruction": "\ud83d", "output": "b"}])"), HasSubstr("not valid JSON"));
  EXPECT_LT(error_of("[\"" + std::string(100000, 'x') + "\x01\"]").size(), 300u);
}

TEST(Records, BadRecordsAreSkippedAndCountedOnRequest) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text +=
        i % 4 == 3 ? "{\"instruction\": \"a\", \"output\": \"\"}\n" : "{\"instruction\": \"a\", \"output\": \"b\"}\n";
  text += "{\n";
  DataSet set = parse_records(text, "data.jsonl", kSkip);
  EXPECT_EQ(set.report.kept, 30);
  EXPECT_EQ(set.report.skipped, 11);
  EXPECT_EQ(set.report.reasons.at("field 'output' is empty"), 10);
  EXPECT_EQ(set.report.problems[1].index, 7);
  EXPECT_EQ(set.report.problems[1].line, 8);
  EXPECT_EQ(set.records[3].index, 4);  // the place in the file, not among the kept
  EXPECT_THAT(set.report.text(), HasSubstr("30 records read, 11 skipped\n"));
  EXPECT_THAT(set.report.text(), HasSubstr("skipped 10: field 'output' is empty\n"));
  EXPECT_THAT(error_of(text), HasSubstr("11 of 41 records cannot be used"));
  EXPECT_THAT(error_of(text), HasSubstr("; and 1 more"));
  EXPECT_EQ(error_of("[1, 2]", kSkip),
            "data.json: 2 of 2 records cannot be used: record 0 must be an object, got integer; record 1 must be an "
            "object, got integer");
}

TEST(Records, UnknownFieldsAreNotedOnce) {
  DataSet set = parse_records(R"([{"instruction": "a", "output": "b", "source": 1},
    {"instruction": 5, "output": "b", "skipped": 1}, {"instruction": "a", "output": "b", "source": 2, "history": []},
    {"messages": [{"role": "user", "content": "a", "name": "x"}, {"role": "assistant", "content": "b", "name": "y"}]}])",
                              "x", kSkip);
  EXPECT_THAT(set.report.notes, ElementsAre("field 'history' is not used (in 1 of 3 records)",
                                            "field 'messages[].name' is not used (in 1 of 3 records)",
                                            "field 'source' is not used (in 2 of 3 records)"));
}

TEST(Records, LongNamesAreCutBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 30; ++i) name += "é";
  EXPECT_THAT(error_of("[{\"a" + name + "\": 1}]"), HasSubstr("the record has: a" + name.substr(0, 38) + "...)"));
}

// Whatever a file holds: records or a FormatError, nothing else.
TEST(Records, DamagedFilesGiveFormatErrors) {
  const std::string whole = R"([{"instruction": "é", "input": "x", "output": "b\n"},
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "\u00e9"}]}])";
  const std::string lines =
      "{\"prompt\": \"é\", \"completion\": \"b\"}\n{\"conversations\": [{\"from\": \"gpt\", \"value\": \"c\"}]}\n";
  int read = 0, refused = 0;
  auto attempt = [&](const std::string& text) {
    try {
      DataSet set = parse_records(text, "x", kSkip);
      EXPECT_EQ(set.report.kept, static_cast<int64_t>(set.records.size()));
      ++read;
    } catch (const FormatError&) {
      ++refused;
    }
  };
  for (const std::string& good : {whole, lines})
    for (size_t i = 0; i < good.size(); ++i) {
      attempt(good.substr(0, i));
      attempt(good.substr(i));
      for (char c : {'\0', '"', '{', ']', '\n', '\xFF', '\xC3', '7'}) {
        std::string bad = good;
        bad[i] = c;
        attempt(bad);
      }
    }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

TEST(Records, FilesThatPeopleHave) {
  DataSet alpaca = read_records(data_file("instruction-data.json"));
  ASSERT_EQ(alpaca.records.size(), 1100u);
  EXPECT_EQ(alpaca.report.skipped, 0);
  EXPECT_EQ(std::count_if(alpaca.records.begin(), alpaca.records.end(),
                          [](const Conversation& c) { return !c.turns[0].input.empty(); }),
            325);
  EXPECT_EQ(alpaca.records[0].turns[0].text(),
            "Evaluate the following phrase by transforming it into the spelling given.\n\nfreind --> friend");
  EXPECT_EQ(alpaca.records[6].turns[1].content, "O\u00f9 est le restaurant le plus proche?");
  EXPECT_EQ(alpaca.records[1099].index, 1099);

  DataSet messages = read_records(data_file("messages-mixed.jsonl"));
  ASSERT_EQ(messages.records.size(), 400u);
  EXPECT_EQ(std::count_if(messages.records.begin(), messages.records.end(),
                          [](const Conversation& c) { return c.turns[0].role == Role::system; }),
            200);
}

TEST(Records, PlaceholdersAreFilled) {
  std::vector<Conversation> records = read_records(data_file("identity.json")).records;
  ASSERT_EQ(records.size(), 91u);
  int64_t filled = fill_placeholders(records, {{"name", "Strata"}, {"author", "the {{name}} authors"}});
  EXPECT_EQ(filled, 137);
  EXPECT_EQ(records[3].turns[1].content,
            "You may refer to me as Strata, an AI assistant developed by the {{name}} authors.");
}

TEST(Records, AFileThatCannotBeOpened) {
  EXPECT_THROW(read_records("/no/such/file.json"), Error);
  EXPECT_THROW(read_records(std::filesystem::temp_directory_path()), Error);
}

}  // namespace
}  // namespace strata::data
