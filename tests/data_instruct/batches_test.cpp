#include "data/instruct/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/instruct/seeded_order.h"
#include "tensor/error.h"
#include "tests/data_instruct/fake_tokenizer.h"

namespace strata::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
constexpr int64_t kNo = kIgnore;

std::vector<EncodedRecord> small_set() {
  EncodedRecord a, b, c;
  a.ids = {5, 6, 2};
  a.counted = {1, 1, 1};
  a.index = 10;
  b.ids = {3, 4, 7, 8, 2, 9};
  b.counted = {0, 0, 0, 1, 1, 0};
  b.index = 11;
  c.ids = {1, 2};
  c.counted = {0, 0};
  c.index = 12;
  return {a, b, c};
}

/// Lengths between 1 and 200, unevenly spread.
std::vector<int64_t> some_lengths(int64_t n) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t word = splitmix64(static_cast<uint64_t>(i));
    lengths.push_back(1 + static_cast<int64_t>((word % 200) * ((word >> 32) % 200) / 200));
  }
  return lengths;
}

std::vector<int64_t> flat(const std::vector<Sampler::MicroBatch>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

// User case 1.10: pad = end = 2. The end of the answer stays a label, padding is not attended to.
TEST(Batch, PaddingIsByLengthNotById) {
  std::vector<EncodedRecord> records = small_set();
  std::vector<int64_t> positions = {0, 1};
  Batch batch = padded_batch(records, positions, 2);
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.width, 6);
  EXPECT_THAT(batch.ids, ElementsAre(5, 6, 2, 2, 2, 2, 3, 4, 7, 8, 2, 9));
  EXPECT_THAT(batch.labels, ElementsAre(5, 6, 2, kNo, kNo, kNo, kNo, kNo, kNo, 8, 2, kNo));
  EXPECT_THAT(batch.targets, ElementsAre(6, 2, kNo, kNo, kNo, kNo, kNo, kNo, 8, 2, kNo, kNo));
  EXPECT_THAT(batch.attention(), ElementsAre(1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(batch.lengths, ElementsAre(3, 6));
  EXPECT_THAT(batch.records, ElementsAre(10, 11));
  EXPECT_EQ(batch.counted, 4);
}

TEST(Batch, RaggedHoldsTheSameWithoutPadding) {
  std::vector<EncodedRecord> records = small_set();
  std::vector<int64_t> positions = {1, 2, 0};
  RaggedBatch batch = ragged_batch(records, positions);
  EXPECT_THAT(batch.ids, ElementsAre(3, 4, 7, 8, 2, 9, 1, 2, 5, 6, 2));
  EXPECT_THAT(batch.labels, ElementsAre(kNo, kNo, kNo, 8, 2, kNo, kNo, kNo, 5, 6, 2));
  // The last token of a record is never scored against the first of the next.
  EXPECT_THAT(batch.targets, ElementsAre(kNo, kNo, 8, 2, kNo, kNo, kNo, kNo, 6, 2, kNo));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 6, 8, 11));
  EXPECT_THAT(batch.records, ElementsAre(11, 12, 10));
  EXPECT_EQ(batch.counted, 4);
}

TEST(Batch, PaddedAndRaggedAgreeOnAnyGrouping) {
  std::vector<EncodedRecord> records = small_set();
  for (const std::vector<int64_t>& positions : {std::vector<int64_t>{0}, {2}, {2, 1}, {0, 1, 2}, {1, 1}, {}}) {
    Batch padded = padded_batch(records, positions, 0);
    RaggedBatch ragged = ragged_batch(records, positions);
    ASSERT_EQ(padded.counted, ragged.counted);
    for (size_t b = 0; b < positions.size(); ++b)
      for (int64_t t = 0; t < padded.lengths[b]; ++t) {
        size_t p = b * static_cast<size_t>(padded.width) + static_cast<size_t>(t);
        size_t r = static_cast<size_t>(ragged.offsets[b] + t);
        EXPECT_EQ(padded.ids[p], ragged.ids[r]);
        EXPECT_EQ(padded.labels[p], ragged.labels[r]);
        EXPECT_EQ(padded.targets[p], ragged.targets[r]);
      }
  }
}

// User case 1.5, the data's part: such a batch counts nothing and says which records it holds.
TEST(Batch, AllMasked) {
  std::vector<EncodedRecord> records = small_set();
  std::vector<int64_t> positions = {2, 2};
  Batch batch = padded_batch(records, positions, 2);
  EXPECT_EQ(batch.counted, 0);
  EXPECT_THAT(batch.targets, Each(kNo));
  EXPECT_THAT(batch.records, ElementsAre(12, 12));
  EXPECT_EQ(ragged_batch(records, positions).counted, 0);
}

TEST(Batch, PositionsAreChecked) {
  std::vector<EncodedRecord> records = small_set();
  EXPECT_THROW(padded_batch(records, std::vector<int64_t>{3}, 0), UsageError);
  EXPECT_THROW(ragged_batch(records, std::vector<int64_t>{-1}), UsageError);
}

TEST(Batch, PadToken) {
  FakeVocabulary v = chatml_vocabulary();
  EXPECT_EQ(pad_token(*fake_tokenizer(v)), *fake_tokenizer(v)->token_id("<|im_end|>"));
  v.pad = "<|endoftext|>";
  EXPECT_EQ(pad_token(*fake_tokenizer(v)), *fake_tokenizer(v)->token_id("<|endoftext|>"));
  v.pad = "";
  EXPECT_EQ(pad_token(*fake_tokenizer(v)), *fake_tokenizer(v)->token_id("<|im_end|>"));
  EXPECT_EQ(pad_token(*fake_tokenizer({})), 0);
}

TEST(Sampler, EveryRecordOnceAnEpoch) {
  for (bool shuffle : {false, true})
    for (bool group : {false, true})
      for (int64_t n : {1, 7, 8, 9, 100, 1003})
        for (int64_t batch_size : {1, 3, 8, 2000}) {
          Sampler sampler(some_lengths(n),
                          {.batch_size = batch_size, .shuffle = shuffle, .group_by_length = group, .group_batches = 4});
          for (int64_t epoch : {0, 1}) {
            std::vector<Sampler::MicroBatch> batches = sampler.epoch(epoch);
            EXPECT_EQ(static_cast<int64_t>(batches.size()), sampler.batches_per_epoch());
            for (size_t i = 0; i + 1 < batches.size(); ++i)
              EXPECT_EQ(static_cast<int64_t>(batches[i].size()), batch_size);  // only the last may be smaller
            std::vector<int64_t> all = flat(batches), expected(static_cast<size_t>(n));
            std::sort(all.begin(), all.end());
            std::iota(expected.begin(), expected.end(), int64_t{0});
            EXPECT_EQ(all, expected);
          }
        }
}

TEST(Sampler, WithoutShuffleTheOrderIsTheFiles) {
  Sampler sampler(std::vector<int64_t>(7, 5), {.batch_size = 3, .shuffle = false});
  EXPECT_THAT(sampler.epoch(4), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
}

TEST(Sampler, EpochsAndSeedsDiffer) {
  Sampler one(some_lengths(500), {.seed = 1}), two(some_lengths(500), {.seed = 2});
  EXPECT_NE(one.epoch(0), one.epoch(1));
  EXPECT_NE(one.epoch(0), two.epoch(0));
  EXPECT_NE(one.epoch(1), two.epoch(0));
  EXPECT_EQ(one.epoch(3), Sampler(some_lengths(500), {.seed = 1}).epoch(3));
  // Shuffled for real: about n^2 / 4 of the pairs are out of order.
  std::vector<int64_t> order = flat(one.epoch(0));
  int64_t inversions = 0;
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1; j < order.size(); ++j) inversions += order[i] > order[j];
  EXPECT_NEAR(static_cast<double>(inversions), 62375, 5 * 1870);  // mean n(n-1)/4, standard deviation 1870
}

// User case 7.1, the data's part: stop after any step, also inside an accumulation window, and go on elsewhere.
TEST(Sampler, ResumedOrderIsTheUninterruptedOne) {
  SamplerOptions options{.batch_size = 4, .group_by_length = true, .group_batches = 5, .seed = 9};
  std::vector<int64_t> lengths = some_lengths(101);  // 26 micro-batches: 7 steps of 4, the last of 2
  Sampler whole(lengths, options);
  std::vector<Sampler::State> states;
  std::vector<std::vector<Sampler::MicroBatch>> steps;
  for (int i = 0; i < 14; ++i) {
    states.push_back(whole.state());
    steps.push_back(whole.next_step(4));
  }
  EXPECT_EQ(whole.state(), (Sampler::State{2, 0}));
  for (size_t from = 0; from < steps.size(); ++from) {
    Sampler resumed(lengths, options);
    resumed.restore(states[from]);
    for (size_t i = from; i < steps.size(); ++i) EXPECT_EQ(resumed.next_step(4), steps[i]);
  }
  Sampler inside(lengths, options);
  inside.restore({1, 6});  // two of the second step's four are done
  EXPECT_EQ(inside.next_step(4), (std::vector<Sampler::MicroBatch>(steps[8].begin() + 2, steps[8].end())));
  EXPECT_EQ(inside.next_step(4), steps[9]);
}

TEST(Sampler, LengthGroupingReducesPadding) {
  std::vector<int64_t> lengths = some_lengths(2000);
  auto padding = [&](bool group, uint64_t seed) {
    Sampler sampler(lengths, {.batch_size = 8, .group_by_length = group, .seed = seed});
    return padding_tokens(sampler.epoch(0), lengths);
  };
  for (uint64_t seed : {0u, 1u, 2u}) EXPECT_LT(padding(true, seed) * 10, padding(false, seed));
  Sampler grouped(lengths, {.batch_size = 8, .group_by_length = true});
  int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  EXPECT_EQ(lengths[static_cast<size_t>(grouped.epoch(0)[0][0])], longest);
  // The rest is not sorted from long to short over the epoch.
  std::vector<Sampler::MicroBatch> batches = grouped.epoch(0);
  int64_t rises = 0;
  for (size_t i = 2; i < batches.size(); ++i)
    rises += lengths[static_cast<size_t>(batches[i][0])] > lengths[static_cast<size_t>(batches[i - 1][0])];
  EXPECT_GT(rises, 80);
}

// User case 1.3.
TEST(Steps, TheTailOfAnEpochIsAStep) {
  Sampler sampler(std::vector<int64_t>(7, 10), {.batch_size = 1, .shuffle = false});
  EXPECT_EQ(total_steps(sampler.batches_per_epoch(), 4, 2), 4);
  std::vector<size_t> sizes;
  while (sampler.state().epoch < 2) sizes.push_back(sampler.next_step(4).size());
  EXPECT_THAT(sizes, ElementsAre(4, 3, 4, 3));

  Sampler three(std::vector<int64_t>(3, 10), {.batch_size = 1});
  EXPECT_EQ(total_steps(three.batches_per_epoch(), 4, 1), 1);
  EXPECT_EQ(three.next_step(4).size(), 3u);
  EXPECT_EQ(three.state(), (Sampler::State{1, 0}));
}

// User case 1.4, the data's part: the schedule's length is in optimizer steps.
TEST(Steps, AreOptimizerSteps) {
  EXPECT_EQ(total_steps(800, 8, 1), 100);
  EXPECT_EQ(total_steps(117, 1, 1), 117);
  EXPECT_EQ(total_steps(1, 1000000, 3), 3);
  for (int64_t accumulation : {0, -1, -8}) {
    EXPECT_THROW(total_steps(800, accumulation, 1), UsageError);
    EXPECT_THROW(Sampler({1}, {}).next_step(accumulation), UsageError);
  }
  EXPECT_THROW(total_steps(0, 1, 1), UsageError);
  EXPECT_THROW(total_steps(1, 1, 0), UsageError);
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_THROW(Sampler(std::vector<int64_t>{}, {}), UsageError);
  EXPECT_THROW(Sampler({1}, {.batch_size = 0}), UsageError);
  EXPECT_THROW(Sampler({1}, {.group_batches = 0}), UsageError);
  Sampler sampler({1, 2, 3}, {.batch_size = 2});
  EXPECT_THROW(sampler.epoch(-1), UsageError);
  EXPECT_THROW(sampler.restore({0, 2}), UsageError);
  EXPECT_THROW(sampler.restore({-1, 0}), UsageError);
  try {
    sampler.restore({3, -1});
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(), "sampler: a position must lie in an epoch of 2 micro-batches, got epoch 3, micro-batch -1");
  }
}

}  // namespace
}  // namespace strata::data
