#include "apps/common/flags.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "apps/common/flag_config.h"
#include "apps/common/human.h"
#include "tensor/error.h"

namespace strata::apps {

// ---- one flag ----------------------------------------------------------------------------------------------------

Flag::Flag(const std::string& names, std::string text, std::string section, FlagBinding binding)
    : text_(std::move(text)), section_(std::move(section)), binding_(std::move(binding)) {
  size_t comma = names.find(',');
  if (comma != std::string::npos) short_name_ = names.substr(0, comma);
  name_ = comma == std::string::npos ? names : names.substr(comma + 1);
  default_text_ = binding_.show();
}

Flag& Flag::required() {
  required_ = true;
  return *this;
}
Flag& Flag::at_least(double low) {
  least_ = low;
  return *this;
}
Flag& Flag::at_most(double high) {
  most_ = high;
  return *this;
}
Flag& Flag::above(double low) {
  above_ = low;
  return *this;
}
Flag& Flag::below(double high) {
  below_ = high;
  return *this;
}
Flag& Flag::one_of(std::vector<std::string> choices) {
  binding_.choices = std::move(choices);
  return *this;
}
Flag& Flag::comma_separated() {
  binding_.splits = true;
  return *this;
}
Flag& Flag::existing() {
  existing_ = true;
  return *this;
}
Flag& Flag::shown_as(std::string placeholder) {
  binding_.placeholder = std::move(placeholder);
  return *this;
}
Flag& Flag::default_text(std::string text) {
  default_text_ = std::move(text);
  return *this;
}

std::string Flag::key() const {
  return is_positional() ? name_ : name_.substr(2);
}

void Flag::set(const std::vector<std::string>& values) {
  given_ = true;
  if (!binding_.list) return set_one(values.back());  // given twice: the last one counts
  binding_.clear();
  for (const std::string& value : values) {
    if (!binding_.splits) {
      set_one(value);
      continue;
    }
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = value.find(',', begin);
      set_one(value.substr(begin, end - begin));
    }
  }
}

void Flag::set_one(const std::string& text) {
  try {
    check_value(text);
    binding_.assign(text);
    Json value = binding_.json();
    const Json& last = binding_.list ? value.items().back() : value;
    if (!last.is_number()) return;
    double number = last.as_double();
    check<UsageError>(!least_ || number >= *least_, "must be at least {}, got {}", least_.value_or(0), text);
    check<UsageError>(!most_ || number <= *most_, "must be at most {}, got {}", most_.value_or(0), text);
    check<UsageError>(!above_ || number > *above_, "must be above {}, got {}", above_.value_or(0), text);
    check<UsageError>(!below_ || number < *below_, "must be below {}, got {}", below_.value_or(0), text);
  } catch (const UsageError& e) {
    fail<UsageError>("{}: {}", name_, e.what());
  }
}

void Flag::check_value(const std::string& text) const {
  check<UsageError>(!existing_ || std::filesystem::exists(text), "no such file or folder, got '{}'", text);
  const auto& choices = binding_.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  std::string nearest = nearest_name(text, choices);
  fail<UsageError>("must be one of {}, got '{}'{}", fmt::join(choices, ", "), text,
                   nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
}

std::string Flag::invocation() const {
  if (is_positional()) return name_ + (binding_.list ? "..." : "");
  return name_ + (is_switch() ? "" : " " + binding_.placeholder);
}

std::string Flag::spelling() const {
  std::string shown = short_name_.empty() ? "" : short_name_ + ", ";
  if (is_switch() && default_text_ == "on") return shown + "--no-" + key();
  return shown + invocation();
}

std::string Flag::meaning() const {
  std::string out = text_;
  if (!binding_.choices.empty()) out += fmt::format(": {}", fmt::join(binding_.choices, ", "));
  if (required_) return out + " (required)";
  if (is_switch()) return out + (default_text_ == "on" ? " (on unless this is given)" : "");
  return default_text_.empty() ? out : out + fmt::format(" (default {})", default_text_);
}

// ---- the command line ---------------------------------------------------------------------------------------------

// CLI11 splits the command line into flags, their values and the rest; everything else (types, bounds, help) is ours.
class Flags::Parser {
 public:
  explicit Parser(const std::vector<std::unique_ptr<Flag>>& flags) {
    app_.set_help_flag("-h,--help");
    app_.allow_extras();
    for (const auto& flag : flags) add(*flag);
    config_ = app_.add_option("--config")->expected(1, -1)->allow_extra_args(false);
  }

  /// True if --help was given. Throws UsageError for unknown flags, missing values and arguments too many.
  bool parse(const std::vector<std::string>& arguments) {
    std::vector<std::string> reversed = split_equals(arguments);
    std::reverse(reversed.begin(), reversed.end());
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
      return true;
    } catch (const CLI::ArgumentMismatch& e) {
      std::string text = e.what();  // "--lr: 1 required TEXT missing"
      fail<UsageError>("{}: expected a value", text.substr(0, text.find(':')));
    } catch (const CLI::ParseError& e) {
      fail<UsageError>("{}", e.what());
    }
    for (const std::string& extra : app_.remaining())
      if (extra != "--") refuse(extra);
    return false;
  }

  std::vector<std::string> values(const Flag& flag) const {
    for (const auto& [known, option] : options_)
      if (known == &flag) return option->results();
    return {};
  }
  std::vector<std::string> config() const { return config_->results(); }

 private:
  void add(const Flag& flag) {
    std::string names = flag.name_;
    if (!flag.short_name_.empty()) names = flag.short_name_ + "," + names;
    CLI::Option* option = nullptr;
    if (flag.is_switch() && !flag.is_positional()) {
      option = app_.add_flag(names + ",!--no-" + flag.key())->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      names_.push_back("--no-" + flag.key());
    } else {
      option = app_.add_option(names);
      if (!flag.is_positional() || flag.binding_.list) option->expected(1, -1);
      option->allow_extra_args(flag.is_positional() && flag.binding_.list);
      if (!flag.is_positional()) takes_value_.push_back(flag.name_);
    }
    if (!flag.is_positional()) names_.push_back(flag.name_);
    options_.emplace_back(&flag, option);
  }

  // "--lr=1" -> "--lr" "1", so that an empty value ("--prompt=") is a value like any other.
  std::vector<std::string> split_equals(const std::vector<std::string>& arguments) const {
    std::vector<std::string> out;
    bool flags_end = false;
    for (const std::string& argument : arguments) {
      flags_end = flags_end || argument == "--";
      size_t equals = argument.find('=');
      std::string name = argument.substr(0, equals);
      bool split = !flags_end && equals != std::string::npos &&
                   (name == "--config" || std::count(takes_value_.begin(), takes_value_.end(), name) > 0);
      out.push_back(split ? name : argument);
      if (split) out.push_back(argument.substr(equals + 1));
    }
    return out;
  }

  [[noreturn]] void refuse(const std::string& extra) const {
    if (extra.size() < 2 || extra.front() != '-') fail<UsageError>("unexpected argument '{}'", extra);
    std::string name = extra.substr(0, extra.find('='));
    std::string nearest = nearest_name(name, names_);
    fail<UsageError>("unknown flag {}{}", name, nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
  }

  CLI::App app_;
  CLI::Option* config_ = nullptr;
  std::vector<std::pair<const Flag*, CLI::Option*>> options_;
  std::vector<std::string> names_{"--help", "--config"}, takes_value_;
};

Flag& Flags::add_flag(const std::string& names, const std::string& text, FlagBinding binding) {
  auto flag = std::make_unique<Flag>(names, text, section_, std::move(binding));
  check(!find(flag->name()), "flags: {} is added twice", flag->name());
  return *flags_.emplace_back(std::move(flag));
}

Flag* Flags::find(std::string_view name) const {
  for (const auto& flag : flags_)
    if (flag->name() == name) return flag.get();
  return nullptr;
}

Flags::Parsed Flags::parse(const std::vector<std::string>& arguments) {
  Parser parser(flags_);
  if (parser.parse(arguments)) return Parsed::help;
  for (const auto& flag : flags_)
    if (auto values = parser.values(*flag); !values.empty()) flag->set(values);
  for (const std::string& path : parser.config()) use_config(path);
  check_required();
  for (const auto& condition : conditions_) condition();
  return Parsed::run;
}

// Flags on the command line, and in an earlier --config, win over the file.
void Flags::use_config(const std::filesystem::path& path) {
  std::vector<std::pair<Flag*, std::vector<std::string>>> found;
  for (const ConfigEntry& entry : read_config(path)) {
    if (!section_applies(entry.section)) continue;
    std::string name = entry.name;
    std::replace(name.begin(), name.end(), '_', '-');
    Flag* flag = find("--" + name);
    if (!flag) flag = find(entry.name);
    if (!flag) {
      std::vector<std::string> keys;
      for (const auto& known : flags_) keys.push_back(known->key());
      std::string nearest = nearest_name(name, keys);
      fail<UsageError>("{}: unknown flag '{}'{}", entry.place, entry.name,
                       nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
    }
    check<UsageError>(flag->binding_.list || entry.values.size() == 1, "{}: {} takes one value, got {}", entry.place,
                      entry.name, entry.values.size());
    if (!flag->given()) found.emplace_back(flag, entry.values);
  }
  for (auto& [flag, values] : found) flag->set(values);
}

// A section's name is the end of the command's: [lora] and [finetune.lora] count for "strata finetune lora".
bool Flags::section_applies(std::string section) const {
  if (section.empty()) return true;
  std::replace(section.begin(), section.end(), '.', ' ');
  return (" " + program_).ends_with(" " + section);
}

void Flags::check_required() const {
  std::vector<std::string> missing;
  for (const auto& flag : flags_)
    if (flag->required_ && !flag->given()) missing.push_back(fmt::format("{} ({})", flag->invocation(), flag->text_));
  check<UsageError>(missing.empty(), "required but not given: {}", fmt::join(missing, ", "));
}

Json Flags::values() const {
  Json out = Json::object();
  for (const auto& flag : flags_) out.set(flag->key(), flag->binding_.json());
  return out;
}

// ---- help ---------------------------------------------------------------------------------------------------------

std::string Flags::usage() const {
  std::string out = program_;
  for (const auto& flag : flags_)
    if (flag->required_ && !flag->is_positional()) out += " " + flag->invocation();
  for (const auto& flag : flags_)
    if (flag->is_positional()) out += flag->required_ ? " " + flag->invocation() : " [" + flag->invocation() + "]";
  return out + " [flags]";
}

namespace {
constexpr int kIndent = 2;
constexpr int kMeaningColumn = 30;  // where the explanations start

std::string help_line(const std::string& spelling, const std::string& meaning, int columns) {
  std::string out = std::string(kIndent, ' ') + spelling;
  int width = display_width(out);
  bool own_line = width + 2 > kMeaningColumn;  // a long spelling: its explanation starts on the next line
  for (const std::string& line : wrap_text(meaning, std::max(columns - kMeaningColumn, 20))) {
    if (own_line) out += '\n';
    out.append(static_cast<size_t>(own_line ? kMeaningColumn : kMeaningColumn - width), ' ').append(line);
    own_line = true;
  }
  return out + '\n';
}
}  // namespace

std::string Flags::help(int columns) const {
  std::string arguments;
  std::vector<std::pair<std::string, std::string>> sections;
  for (const auto& flag : flags_) {
    std::string line = help_line(flag->spelling(), flag->meaning(), columns);
    auto same = [&](const auto& section) { return section.first == flag->section_; };
    auto section = std::find_if(sections.begin(), sections.end(), same);
    if (flag->is_positional())
      arguments += line;
    else if (section == sections.end())
      sections.emplace_back(flag->section_, line);
    else
      section->second += line;
  }
  std::string out = arguments.empty() ? "" : "ARGUMENTS\n" + arguments + '\n';
  for (auto& [title, lines] : sections) {
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    out += title + '\n' + lines + '\n';
  }
  out += "ALWAYS THERE\n";
  out += help_line("--config FILE", "flags from a TOML or INI file, or from the run.json of an earlier run", columns);
  out += help_line("-h, --help", "this text", columns);
  return out;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // Levenshtein: row[j] = edits between name[0, i) and candidate[0, j).
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t j = 1; j <= candidate.size(); ++j) {
        size_t replaced = diagonal + (name[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    bool beginning = name.size() > 4 && candidate.starts_with(name);  // "--temp" for "--temperature"
    size_t distance = beginning ? 1 : row.back();
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace strata::apps
