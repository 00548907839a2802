#include "apps/common/command.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <new>

#include "apps/common/build_info.h"
#include "apps/common/human.h"
#include "apps/common/run_folder.h"
#include "apps/common/terminal.h"
#include "tensor/error.h"

namespace strata::apps {

Command make_group(CommandText text, std::vector<Command> commands) {
  return {std::move(text), nullptr, std::move(commands)};
}

namespace {

// Examples and details with {command} replaced, every line indented.
std::string indented(const std::string& text, const std::string& path) {
  static constexpr std::string_view kName = "{command}";
  std::string out = "  ";
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, kName.size(), kName) == 0) {
      out += path;
      i += kName.size();
      continue;
    }
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n') out += "  ";
    ++i;
  }
  while (out.back() == '\n' || out.back() == ' ') out.pop_back();
  return out + '\n';
}

std::string paragraphs(const std::string& text, int columns) {
  std::string out;
  for (const std::string& line : wrap_text(text, columns)) out += line + '\n';
  return out;
}

std::string group_help(const Command& group, int columns) {
  std::string out = "COMMANDS\n";
  size_t width = 0;
  for (const Command& command : group.commands) width = std::max(width, command.text.name.size());
  for (const Command& command : group.commands) {
    int left = static_cast<int>(width) + 4;
    std::string line = fmt::format("  {:<{}}  ", command.text.name, width);
    for (const std::string& part : wrap_text(command.text.description, std::max(columns - left, 20))) {
      out += line + part + '\n';
      line.assign(static_cast<size_t>(left), ' ');
    }
  }
  return out;
}

const Command* find_command(const Command& group, const std::string& name) {
  for (const Command& command : group.commands)
    if (command.text.name == name) return &command;
  return nullptr;
}

[[noreturn]] void unknown_command(const Command& group, const std::string& path, const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : group.commands) names.push_back(command.text.name);
  std::string nearest = nearest_name(name, names);
  const char* kind = name.front() == '-' ? "flag" : "command";
  fail<UsageError>("{}: unknown {} '{}'{}", path, kind, name,
                   nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
}

// Walks from the program to the command that the first arguments name.
struct Walk {
  const Command* command;
  std::string path;
  size_t used = 0;
};

Walk walk_to_command(const Command& program, const std::vector<std::string>& arguments) {
  Walk walk{&program, program.text.name};
  while (!walk.command->prepare && walk.used < arguments.size()) {
    const Command* next = find_command(*walk.command, arguments[walk.used]);
    if (!next) break;
    walk.command = next;
    walk.path += " " + arguments[walk.used++];
  }
  return walk;
}

int print_help(const Command& command, const std::string& path) {
  fmt::print("{}", help_text(command, path, std::min(terminal_columns(STDOUT_FILENO).value_or(100), 120)));
  return kExitFine;
}

int run_group(const Walk& walk, const std::vector<std::string>& rest) {
  if (rest.empty()) {
    print_help(*walk.command, walk.path);
    return kExitUsage;
  }
  if (rest[0] == "--help" || rest[0] == "-h") return print_help(*walk.command, walk.path);
  unknown_command(*walk.command, walk.path, rest[0]);
}

int run_command(const Walk& walk, const std::vector<std::string>& rest, Invocation invocation) {
  Flags flags(walk.path);
  auto run = walk.command->prepare(flags);
  if (flags.parse(rest) == Flags::Parsed::help) return print_help(*walk.command, walk.path);
  invocation.command = walk.path;
  invocation.config = flags.values();
  return run(invocation);
}

int dispatch(const Command& program, std::vector<std::string> arguments) {
  Invocation invocation{"", arguments, {}};
  invocation.command_line.insert(invocation.command_line.begin(), program.text.name);
  if (!arguments.empty() && arguments[0] == "--version") {
    fmt::print("{}\n", version_line());
    return kExitFine;
  }
  if (!arguments.empty() && arguments[0] == "help" && !program.prepare) {  // "strata help finetune lora"
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  Walk walk = walk_to_command(program, arguments);
  std::vector<std::string> rest(arguments.begin() + static_cast<std::ptrdiff_t>(walk.used), arguments.end());
  return walk.command->prepare ? run_command(walk, rest, std::move(invocation)) : run_group(walk, rest);
}

int report_error(const char* text, const std::string& hint, int code) {
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", printable(text, "\n\t"));
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
  if (code == kExitFailed) record_failure(text);
  return code;
}

}  // namespace

std::string help_text(const Command& command, const std::string& path, int columns) {
  Flags flags(path);
  if (command.prepare) command.prepare(flags);
  std::string out = fmt::format("{} - {}\n\n", path, command.text.description);
  out += fmt::format("USAGE\n  {}\n\n", command.prepare ? flags.usage() : path + " COMMAND [flags]");
  if (!command.text.details.empty()) out += paragraphs(command.text.details, columns) + '\n';
  out += command.prepare ? flags.help(columns) : group_help(command, columns);
  if (!command.text.examples.empty()) out += "\nEXAMPLES\n" + indented(command.text.examples, path);
  if (!command.prepare) out += fmt::format("\n`{} COMMAND --help` explains a command.\n", path);
  return out;
}

int run_program(const Command& program, const std::vector<std::string>& arguments) {
  std::string path = walk_to_command(program, arguments).path;
  try {
    int code = dispatch(program, arguments);
    if (std::fflush(stdout) != 0) return report_error("cannot write to stdout", "", kExitFailed);
    return code;
  } catch (const UsageError& e) {
    return report_error(e.what(), fmt::format("`{} --help` lists the flags and gives examples", path), kExitUsage);
  } catch (const FormatError& e) {
    return report_error(e.what(),
                        "the file is damaged, incomplete or of another kind than its name says; "
                        "fetch it again or compare its size with the source",
                        kExitFailed);
  } catch (const OutOfMemory& e) {
    return report_error(e.what(), "", kExitFailed);  // its text lists the ways out
  } catch (const std::bad_alloc&) {
    return report_error("out of memory", "use a smaller batch, a shorter context or a smaller model", kExitFailed);
  } catch (const std::exception& e) {
    return report_error(e.what(), "", kExitFailed);
  }
}

int run_program(const Command& program, int argc, char** argv) {
  return run_program(program, std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace strata::apps
