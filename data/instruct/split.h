// Which records train, validate and test: a rule that anybody can repeat from the seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/instruct/records.h"

namespace strata::data {

struct SplitOptions {
  double train = 0.85, validation = 0.05, test = 0.10;
  uint64_t seed = 42;
};

/// Positions 0..n-1, each in exactly one part, in the rule's order.
struct Split {
  std::vector<int64_t> train, validation, test;
};

/// The rule: sort the positions by (splitmix64(seed + position), position); the first round(train * n) train, the
/// next round(validation * n) validate, the rest test (round: half away from zero). 1100 records at .85/.05/.10:
/// 935, 55, 110. UsageError if a fraction is not in [0, 1], if they do not add up to 1 or if no record would train.
Split split_records(int64_t n, const SplitOptions& options = {});

/// Records that stand in more than one part, so that a held-out figure looks better than it is.
struct Leakage {
  std::vector<int64_t> validation, test;                // positions whose whole text also trains
  std::vector<int64_t> validation_prompt, test_prompt;  // positions whose prompt also trains, with another answer
  int64_t duplicates_in_train = 0;                      // records of the training part seen before in it
};
Leakage find_leakage(std::span<const Conversation> records, const Split& split);

}  // namespace strata::data
