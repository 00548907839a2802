#include "data/instruct/split.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "data/instruct/seeded_order.h"
#include "tensor/error.h"

namespace strata::data {

namespace {

/// A conversation as one string, without its last turn's answer if prompt_only. Lengths keep fields apart.
std::string key_of(const Conversation& conversation, bool prompt_only) {
  size_t turns = conversation.turns.size();
  if (prompt_only && turns > 0 && conversation.turns.back().role == Role::assistant) --turns;
  std::string key;
  for (size_t i = 0; i < turns; ++i) {
    const Turn& turn = conversation.turns[i];
    for (const std::string* text : {&turn.content, &turn.input})
      key += fmt::format("{} {} {}", role_name(turn.role), text->size(), *text);
  }
  return key;
}

}  // namespace

Split split_records(int64_t n, const SplitOptions& options) {
  for (double fraction : {options.train, options.validation, options.test})
    check<UsageError>(fraction >= 0 && fraction <= 1, "split: fractions must be in [0, 1], got {}", fraction);
  double sum = options.train + options.validation + options.test;
  check<UsageError>(std::abs(sum - 1) < 1e-6, "split: fractions must add up to 1, got {} + {} + {}", options.train,
                    options.validation, options.test);
  check<UsageError>(n >= 0, "split: the number of records must not be negative, got {}", n);
  auto share = [&](double fraction, int64_t left) {
    return std::min<int64_t>(std::llround(fraction * static_cast<double>(n)), left);
  };
  int64_t train = share(options.train, n), validation = share(options.validation, n - train);
  check<UsageError>(train > 0, "split: no record would train, got {} records at a training share of {}", n,
                    options.train);
  std::vector<int64_t> order = seeded_order(n, options.seed);
  auto begin = order.begin(), middle = begin + train, end = middle + validation;
  return {{begin, middle}, {middle, end}, {end, order.end()}};
}

Leakage find_leakage(std::span<const Conversation> records, const Split& split) {
  auto record = [&](int64_t position) -> const Conversation& {
    check<UsageError>(position >= 0 && position < static_cast<int64_t>(records.size()),
                      "find_leakage: the split names record {} of {}", position, records.size());
    return records[static_cast<size_t>(position)];
  };
  Leakage found;
  std::unordered_set<std::string> whole, prompts;
  for (int64_t position : split.train) {
    if (!whole.insert(key_of(record(position), false)).second) ++found.duplicates_in_train;
    prompts.insert(key_of(record(position), true));
  }
  auto compare = [&](const std::vector<int64_t>& part, std::vector<int64_t>& same, std::vector<int64_t>& same_prompt) {
    for (int64_t position : part) {
      if (whole.contains(key_of(record(position), false)))
        same.push_back(position);
      else if (prompts.contains(key_of(record(position), true)))
        same_prompt.push_back(position);
    }
  };
  compare(split.validation, found.validation, found.validation_prompt);
  compare(split.test, found.test, found.test_prompt);
  return found;
}

}  // namespace strata::data
