// Conversations -> token ids with their loss mask, the policy for records that are too long, and the figures that
// are shown before training starts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/instruct/records.h"
#include "data/instruct/template.h"

namespace strata::data {

/// One record ready for batching. counted[i] == 1: the loss counts token i (as what follows tokens 0..i-1).
struct EncodedRecord {
  std::vector<TokenId> ids;
  std::vector<uint8_t> counted;
  int64_t prompt_length = 0;  // where the last answer begins: for a record that ends with it, prompt_ids().size()
  int64_t index = 0;          // Conversation::index
  bool truncated = false;

  int64_t length() const { return static_cast<int64_t>(ids.size()); }
};

/// Tokens that the loss counts: those marked, except a first token, which nothing precedes.
int64_t counted_tokens(const EncodedRecord& record);

/// What happens to a record longer than max_length.
///   error     one error that names the first ten
///   skip      it is left out
///   truncate  its tail is cut off; left out if no counted token would remain
enum class TooLong { error, skip, truncate };

struct EncodeSettings {
  int64_t max_length = 0;  // tokens; 0: no limit
  TooLong too_long = TooLong::truncate;
};

struct LengthStats {
  int64_t count = 0;
  int64_t min = 0, median = 0, p95 = 0, max = 0;  // median and p95 by nearest rank
  int64_t total = 0;
};
LengthStats length_stats(std::vector<int64_t> lengths);

struct EncodeReport {
  int64_t kept = 0;
  std::vector<int64_t> truncated;         // indices of records: cut to max_length
  std::vector<int64_t> too_long;          // left out (TooLong::skip)
  std::vector<int64_t> uncounted;         // left out: no counted token, from the start or after the cut
  std::vector<int64_t> not_fitting;       // left out: the template cannot render the conversation
  std::string not_fitting_reason;         // of the first such record
  std::vector<int64_t> without_stop;      // kept, not cut, but the last counted token does not stop generation
  LengthStats lengths, prompts, counted;  // of the records kept
  std::string text() const;               // a few lines for people, warnings included
};

struct EncodedSet {
  std::vector<EncodedRecord> records;  // in the order of the conversations
  EncodeReport report;
};

/// Encodes every conversation. FormatError if none can be trained on (it shows one record as tokens) or, with
/// TooLong::error, if one is too long; UsageError for a max_length below 2.
EncodedSet encode_records(std::span<const Conversation> records, const Template& form,
                          const EncodeSettings& settings = {});
/// One conversation, uncut. FormatError if the template cannot render it or would count every token.
EncodedRecord encode_record(const Conversation& record, const Template& form);

/// The record decoded, counted tokens between `open` and `close`: what to look at before the first step.
std::string describe_record(const EncodedRecord& record, const Tokenizer& tokenizer, std::string_view open = "⟦",
                            std::string_view close = "⟧");

}  // namespace strata::data
