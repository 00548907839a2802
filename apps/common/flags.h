// The flags of one command: each names a variable, and the variable's value when the flag is added is its default.
//
//   flags.section("training");
//   flags.add("--lr", options.lr, "peak learning rate").above(0);
//   flags.add("--schedule", options.schedule, "shape of the learning rate", {{"cosine", Schedule::cosine}, ...});
//   flags.positional("FILE", options.file, "what to read").required().existing();
//
// Values come from the command line, else from --config FILE, else from the default. Errors are UsageErrors that name
// the flag and what was given: "--lr: must be above 0, got -1".
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/flag_binding.h"
#include "tensor/io/json.h"

namespace strata::apps {

/// One flag or positional argument. The setters describe it further and return it for chaining.
class Flag {
 public:
  Flag(const std::string& names, std::string text, std::string section, FlagBinding binding);

  Flag& required();
  /// Bounds of a number, or of each number of a list.
  Flag& at_least(double low);
  Flag& at_most(double high);
  Flag& above(double low);
  Flag& below(double high);
  /// The texts allowed, for a string or a list of strings.
  Flag& one_of(std::vector<std::string> choices);
  /// A list of strings is also split at commas: --targets q_proj,v_proj.
  Flag& comma_separated();
  /// The path must exist.
  Flag& existing();
  /// What --help shows for the value: "--lr RATE".
  Flag& shown_as(std::string placeholder);
  /// What --help shows as the default where the value says little ("0" that means "all").
  Flag& default_text(std::string text);

  /// "--lr"; "FILE" for a positional.
  const std::string& name() const { return name_; }
  /// "lr": the name in a config file and in run.json.
  std::string key() const;
  /// True after parsing if the command line or the config file set it.
  bool given() const { return given_; }

 private:
  friend class Flags;
  bool is_positional() const { return name_.front() != '-'; }
  bool is_switch() const { return binding_.placeholder.empty(); }
  void set(const std::vector<std::string>& values);
  void set_one(const std::string& text);
  void check_value(const std::string& text) const;
  std::string invocation() const;  // "--model PATH"
  std::string spelling() const;    // "-m, --model PATH"
  std::string meaning() const;     // text, choices and default

  std::string name_, short_name_, text_, section_, default_text_;
  FlagBinding binding_;
  bool required_ = false, existing_ = false, given_ = false;
  std::optional<double> least_, most_, above_, below_;
};

class Flags {
 public:
  enum class Parsed { run, help };

  /// `program` is what the user typed, e.g. "strata finetune lora".
  explicit Flags(std::string program) : program_(std::move(program)) {}
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// Flags added from now on stand under this heading in --help.
  void section(std::string title) { section_ = std::move(title); }
  /// Adds "--name" or "-n,--name". A bool also gets "--no-name".
  template <class T>
  Flag& add(const std::string& names, T& value, const std::string& text) {
    return add_flag(names, text, flag_binding(value));
  }
  template <class E>
  Flag& add(const std::string& names, E& value, const std::string& text,
            const std::vector<std::pair<std::string, E>>& choices) {
    return add_flag(names, text, flag_binding(value, choices));
  }
  /// Adds an argument without dashes; they are filled in the order added. Only the last may be a list.
  template <class T>
  Flag& positional(const std::string& name, T& value, const std::string& text) {
    return add_flag(name, text, flag_binding(value));
  }
  /// Runs after all values are set, for conditions between flags: throw UsageError.
  void check_after(std::function<void()> condition) { conditions_.push_back(std::move(condition)); }

  /// Sets the variables. Returns help, with nothing set, if that was asked for. Throws UsageError.
  Parsed parse(const std::vector<std::string>& arguments);

  /// Every flag and its value, for run.json: {"lr": 0.0002, ...}.
  Json values() const;
  const std::string& program() const { return program_; }
  /// "strata finetune lora --model PATH [flags]".
  std::string usage() const;
  /// The arguments and flags by section, each with its default; lines of at most `columns`.
  std::string help(int columns) const;

 private:
  class Parser;  // holds CLI11
  Flag& add_flag(const std::string& names, const std::string& text, FlagBinding binding);
  Flag* find(std::string_view name) const;
  void use_config(const std::filesystem::path& path);
  bool section_applies(std::string section) const;
  void check_required() const;

  std::string program_, section_ = "flags";
  std::vector<std::unique_ptr<Flag>> flags_;
  std::vector<std::function<void()>> conditions_;
};

/// The candidate most like `name` (at most a third of its letters differ), or "".
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace strata::apps
