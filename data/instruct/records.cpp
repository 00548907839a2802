#include "data/instruct/records.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "tensor/error.h"
#include "tensor/io/json.h"

namespace strata::data {

namespace {

constexpr size_t kShownProblems = 10;

/// A fault of one record; the reader adds where it stands.
struct BadRecord {
  std::string field;
  std::string reason;
};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

/// The beginning of a name or value for a message, cut between characters.
std::string shown(std::string_view text) {
  constexpr size_t kLongest = 40;
  if (text.size() <= kLongest) return std::string(text);
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string field_list(const Json& object) {
  std::string names;
  for (const auto& [name, value] : object.members()) names += (names.empty() ? "" : ", ") + shown(name);
  return names;
}

/// Reads members of one object and knows afterwards which were not read. `place` comes before their names in errors.
class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) throw BadRecord{place_, fmt::format("must be an object, got {}", object.kind_name())};
    if (!place_.empty()) place_ += '.';
  }
  bool has(std::string_view name) const { return object_.contains(name); }
  /// nullptr if absent or null.
  const Json* find(const std::string& name) {
    read_.insert(name);
    const Json* value = object_.find(name);
    return value && value->is_null() ? nullptr : value;
  }
  std::string text(const std::string& name) {
    const Json* value = find(name);
    if (!value) throw BadRecord{place_ + name, "is missing"};
    if (!value->is_string())
      throw BadRecord{place_ + name, fmt::format("must be a string, got {}", value->kind_name())};
    return value->as_string();
  }
  std::string text_or_empty(const std::string& name) { return find(name) ? text(name) : std::string(); }
  std::string all_names() const { return field_list(object_); }

  void collect_unread(const std::string& prefix, std::set<std::string>& names) const {
    for (const auto& [name, value] : object_.members())
      if (!read_.contains(name)) names.insert(prefix + name);
  }

 private:
  const Json& object_;
  std::string place_;
  std::set<std::string> read_;
};

Role role_of(const std::string& name, const std::string& field) {
  if (name == "system") return Role::system;
  if (name == "user" || name == "human") return Role::user;
  if (name == "assistant" || name == "gpt") return Role::assistant;
  throw BadRecord{field, fmt::format("must be system, user or assistant, got '{}'", shown(name))};
}

std::vector<Turn> read_turns(const Json* list, const std::string& name, const char* role_key, const char* text_key,
                             std::set<std::string>& unread) {
  if (!list) throw BadRecord{name, "is missing"};
  if (!list->is_array()) throw BadRecord{name, fmt::format("must be an array, got {}", list->kind_name())};
  std::vector<Turn> turns;
  for (const Json& item : list->items()) {
    std::string at = fmt::format("{}[{}]", name, turns.size());
    Fields fields(item, at);
    Turn turn;
    turn.role = role_of(fields.text(role_key), at + "." + role_key);
    turn.content = fields.text(text_key);
    if (turn.role == Role::system && !turns.empty()) throw BadRecord{at, "is a system turn that is not the first"};
    if (turn.role == Role::assistant && is_blank(turn.content)) throw BadRecord{at + "." + text_key, "is empty"};
    turns.push_back(std::move(turn));
    fields.collect_unread(name + "[].", unread);
  }
  if (std::none_of(turns.begin(), turns.end(), [](const Turn& turn) { return turn.role == Role::assistant; }))
    throw BadRecord{name, "holds no assistant turn"};
  return turns;
}

std::vector<Turn> prompt_and_answer(std::string prompt, std::string input, std::string answer, std::string system,
                                    const char* prompt_field, const char* answer_field) {
  if (is_blank(prompt) && is_blank(input)) throw BadRecord{prompt_field, "is empty"};
  if (is_blank(answer)) throw BadRecord{answer_field, "is empty"};
  std::vector<Turn> turns;
  if (!system.empty()) turns.push_back({Role::system, std::move(system), ""});
  turns.push_back({Role::user, std::move(prompt), is_blank(input) ? std::string() : std::move(input)});
  turns.push_back({Role::assistant, std::move(answer), ""});
  return turns;
}

std::vector<Turn> read_fields(Fields& fields, std::set<std::string>& unread) {
  if (fields.has("messages")) return read_turns(fields.find("messages"), "messages", "role", "content", unread);
  if (fields.has("conversations")) {
    std::vector<Turn> turns = read_turns(fields.find("conversations"), "conversations", "from", "value", unread);
    std::string system = fields.text_or_empty("system");
    if (!system.empty() && turns[0].role != Role::system) turns.insert(turns.begin(), {Role::system, system, ""});
    return turns;
  }
  std::string system = fields.text_or_empty("system");
  if (fields.has("instruction")) {
    std::string instruction = fields.text("instruction"), input = fields.text_or_empty("input");
    return prompt_and_answer(std::move(instruction), std::move(input), fields.text("output"), std::move(system),
                             "instruction", "output");
  }
  if (fields.has("prompt")) {
    std::string prompt = fields.text("prompt");
    return prompt_and_answer(std::move(prompt), "", fields.text("completion"), std::move(system), "prompt",
                             "completion");
  }
  throw BadRecord{"instruction",
                  fmt::format("is missing (nor is there prompt, messages or conversations; the record has: {})",
                              fields.all_names())};
}

std::vector<Turn> read_record(const Json& record, std::map<std::string, int64_t>& unread) {
  Fields fields(record, "");
  std::set<std::string> names;
  std::vector<Turn> turns = read_fields(fields, names);
  fields.collect_unread("", names);
  for (const std::string& name : names) ++unread[name];
  return turns;
}

/// Collects records and problems while one file is read.
class Reader {
 public:
  Reader(std::string source, const ReadOptions& options) : source_(std::move(source)), options_(options) {}

  void add(const Json& record, int64_t line) {
    try {
      Conversation conversation{read_record(record, unread_), next_};
      data_.records.push_back(std::move(conversation));
    } catch (const BadRecord& bad) {
      problem(line, bad.field, bad.reason);
    }
    ++next_;
  }
  void add_unreadable(const std::string& reason, int64_t line) {
    problem(line, "", reason);
    ++next_;
  }

  DataSet finish() {
    ReadReport& report = data_.report;
    check<FormatError>(next_ > 0, "{}: holds no records", source_);
    report.kept = static_cast<int64_t>(data_.records.size());
    report.skipped = next_ - report.kept;
    for (const auto& [name, count] : unread_)
      report.notes.push_back(
          fmt::format("field '{}' is not used (in {} of {} records)", shown(name), count, report.kept));
    bool refuse = report.skipped > 0 && options_.bad_records == BadRecords::error;
    check<FormatError>(!refuse && report.kept > 0, "{}: {} of {} records cannot be used{}: {}", source_, report.skipped,
                       next_, refuse && report.kept > 0 ? " (they can be skipped on request)" : "", first_problems());
    return std::move(data_);
  }

 private:
  void problem(int64_t line, const std::string& field, const std::string& reason) {
    ReadReport& report = data_.report;
    report.problems.push_back({next_, line, field, reason});
    // Places inside a list differ from record to record; the count is by field.
    std::string place = field.substr(0, field.find('['));
    ++report.reasons[place.empty() ? "record " + reason : fmt::format("field '{}' {}", place, reason)];
  }
  std::string first_problems() const {
    std::string text;
    const auto& problems = data_.report.problems;
    for (size_t i = 0; i < std::min(problems.size(), kShownProblems); ++i) text += (i ? "; " : "") + problems[i].text();
    if (problems.size() > kShownProblems) text += fmt::format("; and {} more", problems.size() - kShownProblems);
    return text;
  }

  std::string source_;
  ReadOptions options_;
  DataSet data_;
  int64_t next_ = 0;
  std::map<std::string, int64_t> unread_;
};

void read_array(std::string_view text, const std::string& source, Reader& reader) {
  Json array = Json::parse(text, source);
  for (const Json& record : array.items()) reader.add(record, 0);
}

void read_lines(std::string_view text, Reader& reader) {
  int64_t number = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (is_blank(line)) continue;
    std::optional<Json> record;
    try {
      record = Json::parse(line, "");
    } catch (const FormatError& e) {
      std::string_view reason = e.what();  // ": not valid JSON ...", the place is added by the reader
      if (reason.starts_with(": ")) reason.remove_prefix(2);
      reader.add_unreadable(fmt::format("cannot be read: {}", reason), number);
    }
    if (record) reader.add(*record, number);
  }
}

/// One JSON value over several lines, or one that is no record at all: the file is meant as a whole document.
void refuse_other_documents(std::string_view text, const std::string& source) {
  std::string_view first_line = text.substr(0, text.find('\n'));
  if (first_line.find_first_not_of(" \t\r{") != std::string_view::npos && text.front() == '{') return;
  Json document = Json::parse(text, source);
  fail<FormatError>("{}: must be an array of records or one record a line, got {}{}", source, document.kind_name(),
                    document.is_object() ? fmt::format(" (fields: {})", field_list(document)) : "");
}

}  // namespace

const char* role_name(Role role) {
  static constexpr const char* kNames[] = {"system", "user", "assistant"};
  return kNames[static_cast<size_t>(role)];
}

Conversation instruction_record(std::string instruction, std::string input, std::string output, int64_t index) {
  return {{{Role::user, std::move(instruction), std::move(input)}, {Role::assistant, std::move(output), ""}}, index};
}

std::string RecordProblem::text() const {
  std::string place = line > 0 ? fmt::format("record {} (line {})", index, line) : fmt::format("record {}", index);
  return field.empty() ? fmt::format("{} {}", place, reason) : fmt::format("{}: field '{}' {}", place, field, reason);
}

std::string ReadReport::text() const {
  std::string out = fmt::format("{} records read, {} skipped\n", kept, skipped);
  for (const auto& [reason, count] : reasons) out += fmt::format("  skipped {}: {}\n", count, reason);
  for (const std::string& note : notes) out += fmt::format("  note: {}\n", note);
  return out;
}

DataSet parse_records(std::string_view text, const std::string& source, const ReadOptions& options) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  check<FormatError>(!is_blank(text), "{}: file is empty", source);
  Reader reader(source, options);
  std::string_view body = text.substr(text.find_first_not_of(" \t\r\n\f\v"));
  if (body.front() == '[') {
    read_array(text, source, reader);
  } else {
    refuse_other_documents(body, source);
    read_lines(text, reader);
  }
  return reader.finish();
}

DataSet read_records(const std::filesystem::path& path, const ReadOptions& options) {
  std::ifstream in(path, std::ios::binary);
  check<Error>(in.good() && !std::filesystem::is_directory(path), "{}: cannot open file", path.string());
  std::ostringstream text;
  text << in.rdbuf();
  check<Error>(!in.bad(), "{}: cannot read file", path.string());
  return parse_records(text.view(), path.string(), options);
}

int64_t fill_placeholders(std::vector<Conversation>& records,
                          const std::vector<std::pair<std::string, std::string>>& values) {
  int64_t replaced = 0;
  auto fill = [&](std::string& text) {
    for (const auto& [name, value] : values) {
      std::string mark = "{{" + name + "}}";
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
        text.replace(at, mark.size(), value);
        ++replaced;
      }
    }
  };
  for (Conversation& record : records)
    for (Turn& turn : record.turns) {
      fill(turn.content);
      fill(turn.input);
    }
  return replaced;
}

}  // namespace strata::data
