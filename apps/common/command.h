// A command of the umbrella program `strata` and of the stage programs: a name, flags and what to do.
//
// A command is one .cpp with one function that returns it; commands.h lists them:
//
//   struct Options { std::filesystem::path model; double lr = 2e-4; };
//   Command lora_command() {
//     return make_command<Options>({.name = "lora", .description = "fine-tune ...", .examples = "{command} --model m"},
//                                  [](Flags& flags, Options& o) { flags.add("--lr", o.lr, "peak learning rate"); },
//                                  [](const Options& o, const Invocation& invocation) { ... });
//   }
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/common/flags.h"
#include "tensor/io/json.h"

namespace strata::apps {

/// How the command was started; goes into run.json.
struct Invocation {
  std::string command;                    // "strata finetune lora"
  std::vector<std::string> command_line;  // every argument as typed
  Json config;                            // every flag and its value
};

struct CommandText {
  std::string name;          // one word: "lora"
  std::string description;   // one line, lower case: "fine-tune a language model with LoRA adapters"
  std::string examples;      // lines for EXAMPLES in --help; {command} stands for "strata finetune lora"
  std::string details = {};  // paragraphs between description and flags, for what the flags do not say
};

struct Command {
  CommandText text;
  /// Adds the flags, bound to fresh options, and returns what to do once they are parsed; its result is the exit code.
  std::function<std::function<int(const Invocation&)>(Flags&)> prepare;
  /// A group ("strata finetune ...") has commands of its own and no prepare.
  std::vector<Command> commands;
};

/// A command over an Options struct. `run` returns nothing, or an exit code.
template <class Options, class Setup, class Run>
Command make_command(CommandText text, Setup setup, Run run) {
  auto prepare = [setup, run](Flags& flags) -> std::function<int(const Invocation&)> {
    auto options = std::make_shared<Options>();
    setup(flags, *options);
    return [options, run](const Invocation& invocation) {
      if constexpr (std::is_void_v<std::invoke_result_t<Run, const Options&, const Invocation&>>) {
        run(*options, invocation);
        return 0;
      } else {
        return run(*options, invocation);
      }
    };
  };
  return {std::move(text), prepare, {}};
}

Command make_group(CommandText text, std::vector<Command> commands);

constexpr int kExitFine = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

/// Runs a program: finds the command among the arguments (without argv[0]), parses its flags and runs it. Results go to
/// stdout; errors to stderr as "error: ..." with a hint what to do next. Returns the exit code: 0 fine, 1 failed,
/// 2 wrong usage, 130 interrupted.
int run_program(const Command& program, const std::vector<std::string>& arguments);
int run_program(const Command& program, int argc, char** argv);

/// The text of `path --help` ("strata finetune lora"), lines of at most `columns`.
std::string help_text(const Command& command, const std::string& path, int columns);

}  // namespace strata::apps
