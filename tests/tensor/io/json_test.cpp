#include "tensor/io/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/error.h"

namespace strata {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    Json::parse(text, "file.json");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(Json, KeepsIntegersExactAndMembersInOrder) {
  Json j = Json::parse(R"({"b": 9007199254740993, "a": 18446744073709551615, "c": [1.5, true, null, "é\n"]})", "x");
  EXPECT_EQ(j.get<int64_t>("b"), 9007199254740993);  // 2^53 + 1: a double would round it
  EXPECT_EQ(j.get<uint64_t>("a"), 18446744073709551615u);
  EXPECT_EQ(j.members()[0].first, "b");
  EXPECT_EQ(j.dump(), R"({"b": 9007199254740993, "a": 18446744073709551615, "c": [1.5, true, null, "é\n"]})");
}

TEST(Json, ErrorsNameSourceAndPlace) {
  EXPECT_THAT(error_of("{\"a\": 1,}"), HasSubstr("file.json: not valid JSON at byte 9"));
  EXPECT_THAT(error_of(R"({"a": 1, "a": 2})"), HasSubstr("file.json: field 'a' stands twice"));
  EXPECT_THAT(error_of("[1e400]"), HasSubstr("number overflow"));
  EXPECT_THAT(error_of("\"\xff\""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("{} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nested deeper than 256"));
  EXPECT_THAT(error_of(""), HasSubstr("not valid JSON"));
}

TEST(Json, TypedReadsSayWhatTheyFound) {
  Json j = Json::parse(R"({"n": "12", "m": null})", "config.json");
  try {
    j.get<int64_t>("n");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_STREQ(e.what(), "config.json: field 'n': expected integer (64-bit), got string");
  }
  EXPECT_EQ(j.get_or<int64_t>("m", 7), 7);
  EXPECT_THROW(j.get_or<int64_t>("n", 7), FormatError);
  EXPECT_THROW(j.at("q"), FormatError);
}

TEST(Json, CopiesAreIndependent) {
  Json a = Json::object();
  a.set("list", Json::array().push(1));
  Json b = a;
  b.set("list", 2);
  EXPECT_EQ(a.dump(), R"({"list": [1]})");
  EXPECT_EQ(b.dump(), R"({"list": 2})");
  for (int i = 0; i < 100; ++i) b.set("k" + std::to_string(i), i);
  EXPECT_EQ(b.get<int64_t>("k77"), 77);
}

}  // namespace
}  // namespace strata
