// Encoded records -> batches, and in which order they come.
//
// B records, T tokens of the longest, N tokens of all together.
//   ids      the tokens
//   labels   beside ids: the token itself where the loss counts it, else kIgnore
//   targets  what the logits at a position are scored against: the label of the next token of the same record,
//            kIgnore at a record's last token. This is the one place where labels are shifted: a model's logits at
//            position t and targets at position t go into the cross entropy as they are.
// Padding is decided by the lengths, never by ids: a pad token that is also the end token stays counted where it ends
// an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/instruct/encode.h"

namespace strata::data {

inline constexpr int64_t kIgnore = -100;

/// Padded on the right to the longest record: row b is ids[b * T .. b * T + T).
struct Batch {
  int64_t rows = 0;                      // B
  int64_t width = 0;                     // T
  std::vector<int64_t> ids;              // [B, T]
  std::vector<int64_t> labels, targets;  // [B, T]
  std::vector<int64_t> lengths;          // [B]
  std::vector<int64_t> records;          // [B] EncodedRecord::index
  int64_t counted = 0;                   // targets that are not kIgnore: the loss is a mean over these

  /// [B, T] 1 for a token, 0 for padding; from the lengths.
  std::vector<uint8_t> attention() const;
};

/// The same records one after the other, without padding: record b is ids[offsets[b] .. offsets[b + 1]).
struct RaggedBatch {
  std::vector<int64_t> ids;              // [N]
  std::vector<int64_t> labels, targets;  // [N]
  std::vector<int64_t> offsets;          // [B + 1]
  std::vector<int64_t> records;          // [B]
  int64_t counted = 0;
};

/// Positions into `records`, in this order. UsageError for a position out of range.
Batch padded_batch(std::span<const EncodedRecord> records, std::span<const int64_t> positions, TokenId pad);
RaggedBatch ragged_batch(std::span<const EncodedRecord> records, std::span<const int64_t> positions);

/// The token that fills rows: the tokenizer's pad, else its EOS, else 0. Nothing ever attends to it or counts it.
TokenId pad_token(const Tokenizer& tokenizer);

struct SamplerOptions {
  int64_t batch_size = 8;  // records of a micro-batch; the last one of an epoch may be smaller
  bool shuffle = true;
  /// Puts records of similar length together: the (shuffled) order is cut into groups of group_batches batches and
  /// each group sorted by length, longest first. With shuffle the full batches are then put in a seeded order, and
  /// the batch with the longest record comes first, so that a lack of memory shows at once.
  bool group_by_length = false;
  int64_t group_batches = 50;
  uint64_t seed = 0;
};

/// The micro-batches of each epoch. Epoch e's order is a function of (options, lengths, e) only, so it does not
/// depend on how often a run was interrupted.
class Sampler {
 public:
  using MicroBatch = std::vector<int64_t>;  // positions of records
  struct State {
    int64_t epoch = 0;
    int64_t next = 0;  // the next micro-batch of that epoch
    friend bool operator==(const State&, const State&) = default;
  };

  /// lengths: tokens of each record. UsageError for no records or sizes below 1.
  Sampler(std::vector<int64_t> lengths, const SamplerOptions& options);
  Sampler(std::span<const EncodedRecord> records, const SamplerOptions& options);

  int64_t batches_per_epoch() const;
  std::vector<MicroBatch> epoch(int64_t epoch) const;

  /// The micro-batches of one optimizer step: `accumulation` of them, fewer at the end of an epoch. Steps of an epoch
  /// start at multiples of accumulation, also after a restore in between. UsageError if accumulation < 1.
  std::vector<MicroBatch> next_step(int64_t accumulation);

  const State& state() const { return state_; }
  /// UsageError if the state does not belong to such a sampler.
  void restore(const State& state);

 private:
  std::vector<int64_t> order(int64_t epoch) const;

  std::vector<int64_t> lengths_;
  SamplerOptions options_;
  State state_;
  std::vector<MicroBatch> current_;  // the batches of epoch current_epoch_
  int64_t current_epoch_ = -1;
};

/// Optimizer steps: each epoch's micro-batches in groups of `accumulation`, a smaller group at the end included.
/// UsageError for accumulation, epochs or micro_batches below 1.
int64_t steps_per_epoch(int64_t micro_batches, int64_t accumulation);
int64_t total_steps(int64_t micro_batches, int64_t accumulation, int64_t epochs);

/// Places of padding that padded_batch would add over these micro-batches.
int64_t padding_tokens(std::span<const Sampler::MicroBatch> batches, std::span<const int64_t> lengths);

}  // namespace strata::data
