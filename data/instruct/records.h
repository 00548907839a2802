// Instruction files -> conversations. Reads what people have: Alpaca-style records (instruction, input, output),
// prompt/completion pairs, `messages` lists (role/content) and ShareGPT `conversations` (from/value), as one JSON
// array or as JSONL (one record a line). The kind is told from each record's own fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::data {

enum class Role { system, user, assistant };
const char* role_name(Role role);

/// One turn. `input` is an instruction record's further context (user turns only): the Alpaca template has a
/// section of its own for it, every other template puts it after the instruction (see text()).
struct Turn {
  Role role = Role::user;
  std::string content;
  std::string input;

  /// content, and after an empty line input if there is one.
  std::string text() const { return input.empty() ? content : content.empty() ? input : content + "\n\n" + input; }
  friend bool operator==(const Turn&, const Turn&) = default;
};

struct Conversation {
  std::vector<Turn> turns;
  int64_t index = 0;  // the record's place in its file, from 0

  friend bool operator==(const Conversation&, const Conversation&) = default;
};

/// instruction [+ input] -> output as a conversation of two turns.
Conversation instruction_record(std::string instruction, std::string input, std::string output, int64_t index = 0);

/// Why a record cannot be used. line is 0 in a JSON array.
struct RecordProblem {
  int64_t index = 0;
  int64_t line = 0;
  std::string field;
  std::string reason;  // the same words for the same fault, so that reports can count them
  std::string text() const;
};

struct ReadReport {
  int64_t kept = 0;
  int64_t skipped = 0;
  std::vector<RecordProblem> problems;     // one per skipped record, in file order
  std::map<std::string, int64_t> reasons;  // "field 'output' is empty" -> how many records
  std::vector<std::string> notes;          // once each: fields that nothing reads, and in how many records
  std::string text() const;                // a few lines for people
};

enum class BadRecords { error, skip };

struct ReadOptions {
  BadRecords bad_records = BadRecords::error;
};

struct DataSet {
  std::vector<Conversation> records;
  ReadReport report;
};

/// Reads a file. FormatError names file, record, line (JSONL) and field; with BadRecords::error it names the first
/// ten bad records together. A file that is empty, holds no records or no usable record is always an error.
DataSet read_records(const std::filesystem::path& path, const ReadOptions& options = {});
/// The same from text in memory; `source` names it in errors.
DataSet parse_records(std::string_view text, const std::string& source, const ReadOptions& options = {});

/// Replaces "{{name}}" by its value in every turn; returns how many it replaced.
int64_t fill_placeholders(std::vector<Conversation>& records,
                          const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace strata::data
