#include "apps/common/flag_config.h"

#include <fstream>
#include <iterator>

#include "tensor/error.h"
#include "tensor/io/json.h"

namespace strata::apps {

namespace {

// Reads the characters of one file; `place` is where an error is reported.
class ConfigReader {
 public:
  ConfigReader(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {}

  std::vector<ConfigEntry> read() {
    std::vector<ConfigEntry> entries;
    std::string section;
    while (skip_blank_lines(), !at_end()) {
      if (peek() == '[') {
        section = read_section();
      } else {
        ConfigEntry entry{section, read_name(), {}, place()};
        entry.values = read_value();
        entries.push_back(std::move(entry));
      }
      skip_spaces();
      require(at_end() || peek() == '\n', "expected the end of the line");
    }
    return entries;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::string place() const { return fmt::format("{}:{}", name_, line_); }
  void require(bool ok, const char* what) const {
    if (ok) return;
    std::string rest = text_.substr(at_, std::min<size_t>(20, text_.find('\n', at_) - at_));
    fail<UsageError>("{}: {}, got {}", place(), what,
                     at_end()       ? "the end of the file"
                     : rest.empty() ? "the end of the line"
                                    : "'" + rest + "'");
  }
  void advance() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }

  // Spaces and a comment, up to the end of the line.
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') advance();
    if (peek() == '#' || peek() == ';')
      while (!at_end() && peek() != '\n') advance();
  }
  void skip_blank_lines() {
    for (skip_spaces(); peek() == '\n'; skip_spaces()) advance();
  }

  // A run of characters that need no quotes, without the spaces at its end.
  std::string read_bare(std::string_view stop) {
    std::string word;
    while (!at_end() && peek() != '\n' && stop.find(peek()) == std::string_view::npos) {
      word += peek();
      advance();
    }
    word.erase(word.find_last_not_of(" \t\r") + 1);
    return word;
  }

  std::string read_section() {
    advance();
    std::string section = read_bare("]#;");
    require(peek() == ']' && !section.empty() && section.front() != '[', "expected [section]");
    advance();
    return section;
  }

  std::string read_name() {
    std::string name = read_bare("=#;[]\"'");
    require(!name.empty() && peek() == '=', "expected name = value");
    advance();
    return name;
  }

  std::vector<std::string> read_value() {
    skip_spaces();
    if (peek() != '[') return {read_item("#;")};
    advance();
    std::vector<std::string> values;
    while (skip_blank_lines(), peek() != ']') {
      require(!at_end(), "expected ] at the end of the list");
      values.push_back(read_item(",]#;"));
      skip_blank_lines();
      require(peek() == ',' || peek() == ']', "expected , or ] after a value");
      if (peek() == ',') advance();
    }
    advance();
    return values;
  }

  std::string read_item(std::string_view stop) {
    if (peek() == '"' || peek() == '\'') return read_quoted();
    std::string word = read_bare(stop);
    require(!word.empty(), "expected a value (\"\" for an empty text)");
    return word;
  }

  // "..." with the escapes \" \\ \n \t \r, or '...' as it stands.
  std::string read_quoted() {
    const char quote = peek();
    advance();
    std::string out;
    while (peek() != quote) {
      require(!at_end() && peek() != '\n', "expected a closing quote");
      if (quote == '"' && peek() == '\\') {
        advance();
        out += read_escape();
      } else {
        out += peek();
      }
      advance();
    }
    advance();
    return out;
  }

  char read_escape() const {
    static constexpr std::string_view kFrom = "\"\\ntr", kTo = "\"\\\n\t\r";
    size_t which = at_end() ? std::string_view::npos : kFrom.find(peek());
    require(which != std::string_view::npos, "expected one of \\\" \\\\ \\n \\t \\r");
    return kTo[which];
  }

  std::string text_, name_;
  size_t at_ = 0;
  int line_ = 1;
};

std::string value_text(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

std::vector<ConfigEntry> read_run_json(const std::filesystem::path& path) {
  Json run = Json::parse_file(path);
  std::vector<ConfigEntry> entries;
  for (const auto& [name, value] : run.at("config").members()) {
    if (value.is_null()) continue;                    // a flag that was not given and has no default
    if (name == "out" || name == "resume") continue;  // the other run's own folder
    ConfigEntry entry{"", name, {}, path.string()};
    if (value.is_array())
      for (const Json& item : value.items()) entry.values.push_back(value_text(item));
    else
      entry.values.push_back(value_text(value));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::vector<ConfigEntry> read_config(const std::filesystem::path& path) {
  check<UsageError>(std::filesystem::is_regular_file(path), "--config: cannot open file '{}'", path.string());
  if (path.extension() == ".json") return read_run_json(path);
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  check<UsageError>(!in.bad() && in.is_open(), "--config: cannot read file '{}'", path.string());
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.erase(0, 3);
  return ConfigReader(std::move(text), path.string()).read();
}

}  // namespace strata::apps
