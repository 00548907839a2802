#include "data/instruct/batches.h"

#include <algorithm>
#include <utility>

#include "data/instruct/seeded_order.h"
#include "tensor/error.h"

namespace strata::data {

namespace {

const EncodedRecord& record_at(std::span<const EncodedRecord> records, int64_t position) {
  check<UsageError>(position >= 0 && position < static_cast<int64_t>(records.size()),
                    "batch: position must be below {}, got {}", records.size(), position);
  return records[static_cast<size_t>(position)];
}

/// Writes one record at the places that start at `at`; returns how many targets count.
int64_t write_record(const EncodedRecord& record, size_t at, std::vector<int64_t>& ids, std::vector<int64_t>& labels,
                     std::vector<int64_t>& targets) {
  int64_t counted = 0;
  for (size_t t = 0; t < record.ids.size(); ++t) {
    ids[at + t] = record.ids[t];
    if (!record.counted[t]) continue;
    labels[at + t] = record.ids[t];
    if (t == 0) continue;  // nothing predicts a first token
    targets[at + t - 1] = record.ids[t];
    ++counted;
  }
  return counted;
}

std::vector<int64_t> lengths_of(std::span<const EncodedRecord> records) {
  std::vector<int64_t> lengths;
  for (const EncodedRecord& record : records) lengths.push_back(record.length());
  return lengths;
}

int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

}  // namespace

std::vector<uint8_t> Batch::attention() const {
  std::vector<uint8_t> mask(ids.size(), 0);
  for (int64_t b = 0; b < rows; ++b) std::fill_n(mask.begin() + b * width, lengths[static_cast<size_t>(b)], uint8_t{1});
  return mask;
}

Batch padded_batch(std::span<const EncodedRecord> records, std::span<const int64_t> positions, TokenId pad) {
  Batch batch;
  batch.rows = static_cast<int64_t>(positions.size());
  for (int64_t position : positions) batch.width = std::max(batch.width, record_at(records, position).length());
  size_t size = static_cast<size_t>(batch.rows * batch.width);
  batch.ids.assign(size, pad);
  batch.labels.assign(size, kIgnore);
  batch.targets.assign(size, kIgnore);
  for (size_t b = 0; b < positions.size(); ++b) {
    const EncodedRecord& record = record_at(records, positions[b]);
    batch.counted += write_record(record, b * static_cast<size_t>(batch.width), batch.ids, batch.labels, batch.targets);
    batch.lengths.push_back(record.length());
    batch.records.push_back(record.index);
  }
  return batch;
}

RaggedBatch ragged_batch(std::span<const EncodedRecord> records, std::span<const int64_t> positions) {
  RaggedBatch batch;
  batch.offsets.push_back(0);
  for (int64_t position : positions)
    batch.offsets.push_back(batch.offsets.back() + record_at(records, position).length());
  size_t size = static_cast<size_t>(batch.offsets.back());
  batch.ids.assign(size, 0);
  batch.labels.assign(size, kIgnore);
  batch.targets.assign(size, kIgnore);
  for (size_t b = 0; b < positions.size(); ++b) {
    const EncodedRecord& record = record_at(records, positions[b]);
    batch.counted +=
        write_record(record, static_cast<size_t>(batch.offsets[b]), batch.ids, batch.labels, batch.targets);
    batch.records.push_back(record.index);
  }
  return batch;
}

TokenId pad_token(const Tokenizer& tokenizer) {
  if (std::optional<TokenId> pad = tokenizer.pad()) return *pad;
  return tokenizer.eos().value_or(0);
}

Sampler::Sampler(std::vector<int64_t> lengths, const SamplerOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  check<UsageError>(!lengths_.empty(), "sampler: needs at least one record, got 0");
  check<UsageError>(options_.batch_size >= 1, "sampler: batch_size must be at least 1, got {}", options_.batch_size);
  check<UsageError>(options_.group_batches >= 1, "sampler: group_batches must be at least 1, got {}",
                    options_.group_batches);
}

Sampler::Sampler(std::span<const EncodedRecord> records, const SamplerOptions& options)
    : Sampler(lengths_of(records), options) {}

int64_t Sampler::batches_per_epoch() const {
  return ceil_div(static_cast<int64_t>(lengths_.size()), options_.batch_size);
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  int64_t n = static_cast<int64_t>(lengths_.size());
  std::vector<int64_t> order(lengths_.size());
  if (options_.shuffle)
    order = seeded_order(n, splitmix64(options_.seed ^ splitmix64(static_cast<uint64_t>(epoch))));
  else
    std::iota(order.begin(), order.end(), int64_t{0});
  if (!options_.group_by_length) return order;
  int64_t group = n;  // batch_size * group_batches without overflow
  if (options_.group_batches < ceil_div(n, options_.batch_size)) group = options_.batch_size * options_.group_batches;
  for (int64_t begin = 0; begin < n; begin += group)
    std::stable_sort(order.begin() + begin, order.begin() + std::min(n, begin + group), [&](int64_t a, int64_t b) {
      return lengths_[static_cast<size_t>(a)] > lengths_[static_cast<size_t>(b)];
    });
  return order;
}

std::vector<Sampler::MicroBatch> Sampler::epoch(int64_t epoch) const {
  check<UsageError>(epoch >= 0, "sampler: epoch must not be negative, got {}", epoch);
  std::vector<int64_t> positions = order(epoch);
  std::vector<MicroBatch> batches;
  for (size_t begin = 0; begin < positions.size();) {
    size_t size = std::min(positions.size() - begin, static_cast<size_t>(options_.batch_size));
    batches.emplace_back(positions.begin() + static_cast<std::ptrdiff_t>(begin),
                         positions.begin() + static_cast<std::ptrdiff_t>(begin + size));
    begin += size;
  }
  if (!options_.shuffle || !options_.group_by_length) return batches;

  size_t full = positions.size() / static_cast<size_t>(options_.batch_size);
  std::vector<MicroBatch> mixed;
  for (int64_t i :
       seeded_order(static_cast<int64_t>(full), splitmix64(~options_.seed ^ splitmix64(~static_cast<uint64_t>(epoch)))))
    mixed.push_back(std::move(batches[static_cast<size_t>(i)]));
  auto longest = std::max_element(mixed.begin(), mixed.end(), [&](const MicroBatch& a, const MicroBatch& b) {
    return lengths_[static_cast<size_t>(a[0])] < lengths_[static_cast<size_t>(b[0])];
  });
  if (longest != mixed.end()) std::iter_swap(mixed.begin(), longest);
  if (full < batches.size()) mixed.push_back(std::move(batches.back()));
  return mixed;
}

std::vector<Sampler::MicroBatch> Sampler::next_step(int64_t accumulation) {
  check<UsageError>(accumulation >= 1, "sampler: accumulation must be at least 1, got {}", accumulation);
  if (current_epoch_ != state_.epoch) {
    current_ = epoch(state_.epoch);
    current_epoch_ = state_.epoch;
  }
  int64_t count = batches_per_epoch();
  int64_t left_of_step = accumulation - state_.next % accumulation;
  int64_t end = state_.next + std::min(left_of_step, count - state_.next);
  std::vector<MicroBatch> step(current_.begin() + state_.next, current_.begin() + end);
  state_ = end == count ? State{state_.epoch + 1, 0} : State{state_.epoch, end};
  return step;
}

void Sampler::restore(const State& state) {
  check<UsageError>(state.epoch >= 0 && state.next >= 0 && state.next < batches_per_epoch(),
                    "sampler: a position must lie in an epoch of {} micro-batches, got epoch {}, micro-batch {}",
                    batches_per_epoch(), state.epoch, state.next);
  state_ = state;
}

int64_t steps_per_epoch(int64_t micro_batches, int64_t accumulation) {
  check<UsageError>(micro_batches >= 1, "steps: micro_batches must be at least 1, got {}", micro_batches);
  check<UsageError>(accumulation >= 1, "steps: accumulation must be at least 1, got {}", accumulation);
  return ceil_div(micro_batches, accumulation);
}

int64_t total_steps(int64_t micro_batches, int64_t accumulation, int64_t epochs) {
  check<UsageError>(epochs >= 1, "steps: epochs must be at least 1, got {}", epochs);
  return steps_per_epoch(micro_batches, accumulation) * epochs;
}

int64_t padding_tokens(std::span<const Sampler::MicroBatch> batches, std::span<const int64_t> lengths) {
  int64_t padding = 0;
  for (const Sampler::MicroBatch& batch : batches) {
    int64_t longest = 0, together = 0;
    for (int64_t position : batch) {
      int64_t length = lengths[static_cast<size_t>(position)];
      longest = std::max(longest, length);
      together += length;
    }
    padding += longest * static_cast<int64_t>(batch.size()) - together;
  }
  return padding;
}

}  // namespace strata::data
