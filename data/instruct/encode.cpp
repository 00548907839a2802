#include "data/instruct/encode.h"

#include <algorithm>
#include <utility>

#include "tensor/error.h"

namespace strata::data {

namespace {

constexpr size_t kShownRecords = 10;

std::string index_list(const std::vector<int64_t>& indices) {
  std::string text;
  for (size_t i = 0; i < std::min(indices.size(), kShownRecords); ++i)
    text += (i ? ", " : "") + std::to_string(indices[i]);
  if (indices.size() > kShownRecords) text += ", ...";
  return text;
}

/// Cuts a record to max_length; what was counted and lies before the cut stays counted.
void cut(EncodedRecord& record, int64_t max_length) {
  record.ids.resize(static_cast<size_t>(max_length));
  record.counted.resize(static_cast<size_t>(max_length));
  record.prompt_length = std::min(record.prompt_length, max_length);
  record.truncated = true;
}

/// Where the last run of counted tokens begins.
int64_t last_answer_start(const std::vector<uint8_t>& counted) {
  auto last = std::find(counted.rbegin(), counted.rend(), 1);
  return std::find(last, counted.rend(), 0).base() - counted.begin();
}

bool ends_with_stop(const EncodedRecord& record, const std::vector<TokenId>& stop) {
  for (size_t i = record.ids.size(); i-- > 0;)
    if (record.counted[i]) return std::find(stop.begin(), stop.end(), record.ids[i]) != stop.end();
  return false;
}

std::string nothing_left(const EncodeReport& report, const std::string& shown) {
  std::string why;
  auto add = [&](const std::vector<int64_t>& indices, const std::string& what) {
    if (!indices.empty()) why += fmt::format("{}{} {}", why.empty() ? "" : ", ", indices.size(), what);
  };
  add(report.too_long, "longer than the limit");
  add(report.uncounted, "without a counted token");
  add(report.not_fitting, "that do not fit the template");
  if (!report.not_fitting_reason.empty()) why += fmt::format(" ({})", report.not_fitting_reason);
  if (!shown.empty()) why += ". A record as the model would see it, counted tokens in ⟦⟧:\n" + shown;
  return why;
}

}  // namespace

int64_t counted_tokens(const EncodedRecord& record) {
  if (record.counted.empty()) return 0;
  return std::count(record.counted.begin() + 1, record.counted.end(), 1);
}

LengthStats length_stats(std::vector<int64_t> lengths) {
  LengthStats stats;
  if (lengths.empty()) return stats;
  std::sort(lengths.begin(), lengths.end());
  auto rank = [&](size_t percent) { return lengths[(lengths.size() * percent + 99) / 100 - 1]; };
  stats.count = static_cast<int64_t>(lengths.size());
  stats.min = lengths.front();
  stats.median = rank(50);
  stats.p95 = rank(95);
  stats.max = lengths.back();
  for (int64_t length : lengths) stats.total += length;
  return stats;
}

std::string EncodeReport::text() const {
  std::string out = fmt::format("{} records to train on\n", kept);
  auto row = [&](const char* name, const LengthStats& s) {
    out += fmt::format("  {:<15} min {}, median {}, p95 {}, max {}, together {}\n", name, s.min, s.median, s.p95, s.max,
                       s.total);
  };
  row("tokens:", lengths);
  row("prompt tokens:", prompts);
  row("counted tokens:", counted);
  auto warn = [&](const std::vector<int64_t>& indices, const std::string& what) {
    if (!indices.empty()) out += fmt::format("  warning: {} {}: {}\n", indices.size(), what, index_list(indices));
  };
  warn(truncated, "records cut to the maximum length");
  warn(too_long, "records left out, longer than the maximum length");
  warn(uncounted, "records left out, no token of them would be counted");
  warn(not_fitting, fmt::format("records left out ({})", not_fitting_reason));
  warn(without_stop, "records end with a counted token that does not stop generation");
  return out;
}

EncodedRecord encode_record(const Conversation& record, const Template& form) {
  Template::Encoded encoded = form.encode(record);
  EncodedRecord out;
  out.ids = std::move(encoded.ids);
  out.counted = std::move(encoded.counted);
  out.index = record.index;
  out.prompt_length = last_answer_start(out.counted);
  bool all = !out.counted.empty() && std::find(out.counted.begin(), out.counted.end(), 0) == out.counted.end();
  check<FormatError>(!all, "template {}: every token of record {} is counted, so there is no prompt", form.name(),
                     record.index);
  return out;
}

EncodedSet encode_records(std::span<const Conversation> records, const Template& form, const EncodeSettings& settings) {
  check<UsageError>(settings.max_length == 0 || settings.max_length >= 2,
                    "encode_records: max_length must be at least 2 (or 0 for no limit), got {}", settings.max_length);
  EncodedSet set;
  EncodeReport& report = set.report;
  std::vector<TokenId> stop = form.stop_ids();
  std::vector<int64_t> refused, lengths, prompts, counted;
  std::string shown;  // one record that cannot be trained on
  for (const Conversation& conversation : records) {
    EncodedRecord record;
    try {
      record = encode_record(conversation, form);
    } catch (const FormatError& e) {
      if (report.not_fitting.empty()) report.not_fitting_reason = e.what();
      report.not_fitting.push_back(conversation.index);
      continue;
    }
    bool too_long = settings.max_length > 0 && record.length() > settings.max_length;
    if (too_long && settings.too_long != TooLong::truncate) {
      (settings.too_long == TooLong::skip ? report.too_long : refused).push_back(record.index);
      continue;
    }
    if (too_long) cut(record, settings.max_length);
    if (counted_tokens(record) == 0) {
      if (shown.empty()) shown = describe_record(record, form.tokenizer());
      report.uncounted.push_back(record.index);
      continue;
    }
    if (too_long)
      report.truncated.push_back(record.index);
    else if (!ends_with_stop(record, stop))
      report.without_stop.push_back(record.index);
    lengths.push_back(record.length());
    prompts.push_back(record.prompt_length);
    counted.push_back(counted_tokens(record));
    set.records.push_back(std::move(record));
  }
  check<FormatError>(refused.empty(), "encode_records: {} records are longer than the maximum of {} tokens: {}",
                     refused.size(), settings.max_length, index_list(refused));
  report.kept = static_cast<int64_t>(set.records.size());
  if (report.kept == 0)
    fail<FormatError>("encode_records: none of {} records can be trained on: {}", records.size(),
                      nothing_left(report, shown));
  report.lengths = length_stats(std::move(lengths));
  report.prompts = length_stats(std::move(prompts));
  report.counted = length_stats(std::move(counted));
  return set;
}

std::string describe_record(const EncodedRecord& record, const Tokenizer& tokenizer, std::string_view open,
                            std::string_view close) {
  std::string out, before;
  std::span<const TokenId> ids(record.ids);
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin;
    while (end < ids.size() && record.counted[end] == record.counted[begin]) ++end;
    // The text that these ids add: decoding them alone would lose a leading space.
    std::string whole = tokenizer.decode(ids.first(end));
    std::string added =
        whole.starts_with(before) ? whole.substr(before.size()) : tokenizer.decode(ids.subspan(begin, end - begin));
    if (record.counted[begin])
      out.append(open).append(added).append(close);
    else
      out += added;
    before = std::move(whole);
    begin = end;
  }
  return out;
}

}  // namespace strata::data
