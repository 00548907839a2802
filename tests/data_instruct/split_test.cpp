#include "data/instruct/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "data/instruct/seeded_order.h"
#include "tensor/error.h"

namespace strata::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int64_t> all_of(const Split& split) {
  std::vector<int64_t> all = split.train;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  all.insert(all.end(), split.test.begin(), split.test.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int64_t> iota(int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

TEST(SeededOrder, KnownWords) {
  EXPECT_EQ(splitmix64(0), 0xe220a8397b1dcdafu);  // the first word of the published generator for seed 0
  EXPECT_EQ(splitmix64(42), 0xbdd732262feb6e95u);
}

// The positions were computed by an independent Python program from the rule as documented.
TEST(Split, RuleForSeed42) {
  Split split = split_records(1100);
  ASSERT_EQ(split.train.size(), 935u);
  ASSERT_EQ(split.validation.size(), 55u);
  ASSERT_EQ(split.test.size(), 110u);
  EXPECT_THAT(std::vector<int64_t>(split.train.begin(), split.train.begin() + 12),
              ElementsAre(516, 1006, 950, 154, 993, 921, 430, 934, 253, 933, 647, 668));
  EXPECT_THAT(std::vector<int64_t>(split.validation.begin(), split.validation.begin() + 5),
              ElementsAre(853, 290, 946, 569, 255));
  EXPECT_THAT(std::vector<int64_t>(split.test.begin(), split.test.begin() + 4), ElementsAre(728, 259, 662, 1041));
  EXPECT_THAT(std::vector<int64_t>(split.test.end() - 3, split.test.end()), ElementsAre(923, 625, 217));
  EXPECT_EQ(all_of(split), iota(1100));
}

TEST(Split, EveryRecordStandsInOnePart) {
  for (int64_t n : {1, 2, 3, 7, 10, 99, 1000})
    for (uint64_t seed : {0u, 1u, 42u})
      for (auto [a, b, c] : {std::tuple{.85, .05, .1}, {.5, .5, 0.}, {1., 0., 0.}, {.4, .3, .3}}) {
        if (std::llround(a * static_cast<double>(n)) == 0) continue;
        Split split = split_records(n, {.train = a, .validation = b, .test = c, .seed = seed});
        EXPECT_EQ(all_of(split), iota(n)) << n;
        EXPECT_EQ(static_cast<int64_t>(split.train.size()), std::llround(a * static_cast<double>(n)));
        EXPECT_TRUE(c > 0 || split.test.empty());
      }
  EXPECT_NE(split_records(100, {.seed = 1}).train, split_records(100, {.seed = 2}).train);
}

TEST(Split, RefusesContradictions) {
  EXPECT_THROW(split_records(10, {.train = .9, .validation = .2, .test = .1}), UsageError);
  EXPECT_THROW(split_records(10, {.train = 1.2, .validation = -.2, .test = 0}), UsageError);
  EXPECT_THROW(split_records(10, {.train = std::nan(""), .validation = .5, .test = .5}), UsageError);
  EXPECT_THROW(split_records(10, {.train = 0, .validation = .5, .test = .5}), UsageError);
  EXPECT_THROW(split_records(0), UsageError);
  EXPECT_THROW(split_records(-1), UsageError);
}

TEST(Leakage, DuplicatesAcrossPartsAreFound) {
  std::vector<Conversation> records = {instruction_record("a", "", "1"),  instruction_record("b", "", "2"),
                                       instruction_record("a", "", "1"),  instruction_record("b", "", "3"),
                                       instruction_record("a", "x", "1"), instruction_record("a", "", "1")};
  Leakage found = find_leakage(records, {{0, 1, 5}, {2, 4}, {3}});
  EXPECT_THAT(found.validation, ElementsAre(2));
  EXPECT_THAT(found.validation_prompt, IsEmpty());
  EXPECT_THAT(found.test, IsEmpty());
  EXPECT_THAT(found.test_prompt, ElementsAre(3));
  EXPECT_EQ(found.duplicates_in_train, 1);
  EXPECT_THROW(find_leakage(records, {{6}, {}, {}}), UsageError);
}

// 25 instructions of the file come twice with different answers; four of them end up on both sides.
TEST(Leakage, OfTheInstructionData) {
  std::vector<Conversation> records =
      read_records(std::filesystem::path(STRATA_TEST_DATA) / "instruct/instruction-data.json").records;
  Leakage found = find_leakage(records, split_records(1100));
  EXPECT_THAT(found.validation, IsEmpty());
  EXPECT_THAT(found.test, IsEmpty());
  EXPECT_THAT(found.validation_prompt, ElementsAre(1050));
  EXPECT_THAT(found.test_prompt, ElementsAre(323, 355, 509));
}

}  // namespace
}  // namespace strata::data
