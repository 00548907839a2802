// The exit codes and texts of run_program, and of every registered command.
#include "apps/common/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>

#include "apps/commands.h"
#include "apps/common/build_info.h"
#include "apps/common/common_flags.h"
#include "tensor/error.h"

namespace strata::apps {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Result {
  int code;
  std::string out, err;
};

Result run(const Command& program, const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int code = run_program(program, arguments);
  std::string out = testing::internal::GetCapturedStdout();
  return {code, out, testing::internal::GetCapturedStderr()};
}

struct Options {
  int64_t n = 1;
  CommonOptions common;
};

// A program "prog" with the command "prog group work", which does `action`.
Command program(std::function<int(const Options&, const Invocation&)> action) {
  Command work = make_command<Options>(
      {.name = "work", .description = "do the work", .examples = "{command} --n 2\n{command} --n 3"},
      [](Flags& flags, Options& o) {
        flags.add("--n", o.n, "how much");
        add_common_flags(flags, o.common);
      },
      action);
  Command group =
      make_group({.name = "group", .description = "commands that work", .examples = "{command} work"}, {work});
  return make_group({.name = "prog", .description = "a program", .examples = "{command} group work"}, {group});
}

Command throwing(std::function<void()> action) {
  return program([action](const Options&, const Invocation&) {
    action();
    return 0;
  });
}

TEST(Command, RunsWithFreshOptionsEachTime) {
  std::vector<int64_t> seen;
  Invocation last;
  Command p = program([&](const Options& o, const Invocation& invocation) {
    seen.push_back(o.n);
    last = invocation;
    return o.n == 7 ? 7 : 0;
  });
  EXPECT_EQ(run(p, {"group", "work", "--n", "7"}).code, 7);
  EXPECT_EQ(run(p, {"group", "work"}).code, 0);
  EXPECT_THAT(seen, testing::ElementsAre(7, 1));
  EXPECT_EQ(last.command, "prog group work");
  EXPECT_THAT(last.command_line, testing::ElementsAre("prog", "group", "work"));
  EXPECT_EQ(last.config.dump(), R"({"n": 1, "seed": 42, "device": "auto", "threads": 0})");
}

TEST(Command, AStageProgramServesTheSameCommands) {
  Command stage = program([](const Options&, const Invocation&) { return 0; }).commands[0];
  stage.text.name = "stage9-work";
  EXPECT_THAT(run(stage, {"work", "--help"}).out, HasSubstr("  stage9-work work --n 2\n  stage9-work work --n 3\n"));
}

TEST(Command, HelpEverywhereItIsExpected) {
  Command p = throwing([] {});
  std::string top = run(p, {"--help"}).out;
  EXPECT_THAT(
      top, StartsWith("prog - a program\n\nUSAGE\n  prog COMMAND [flags]\n\nCOMMANDS\n  group  commands that work\n"));
  EXPECT_EQ(run(p, {"help"}).out, top);
  std::string leaf = run(p, {"group", "work", "--help"}).out;
  EXPECT_THAT(leaf, StartsWith("prog group work - do the work\n\nUSAGE\n  prog group work [flags]\n"));
  EXPECT_THAT(leaf, HasSubstr("EXAMPLES\n  prog group work --n 2\n  prog group work --n 3\n"));
  EXPECT_EQ(run(p, {"help", "group", "work"}).out, leaf);
  EXPECT_EQ(run(p, {"group", "work", "--n", "5", "-h"}).out, leaf);
  EXPECT_EQ(run(p, {"group", "-h"}).code, 0);
}

TEST(Command, NoCommandShowsHelpAndCountsAsWrongUsage) {
  Result result = run(throwing([] {}), {});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr("COMMANDS"));
}

TEST(Command, VersionNamesTheBuild) {
  Result result = run(throwing([] {}), {"--version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("strata " + build_info().version + " ("));
  EXPECT_THAT(result.out, HasSubstr(build_info().compiler));
}

TEST(Command, WrongUsageIsTwoWithAHint) {
  Command p = throwing([] {});
  Result flag = run(p, {"group", "work", "--m", "3"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_EQ(flag.err,
            "error: unknown flag --m (did you mean --n?)\n"
            "hint: `prog group work --help` lists the flags and gives examples\n");
  Result command = run(p, {"group", "wrok"});
  EXPECT_EQ(command.code, 2);
  EXPECT_THAT(command.err, StartsWith("error: prog group: unknown command 'wrok'"));
  EXPECT_THAT(run(p, {"grop"}).err, HasSubstr("(did you mean group?)"));
  EXPECT_THAT(run(p, {"--vers"}).err, StartsWith("error: prog: unknown flag '--vers'"));
  EXPECT_EQ(run(p, {""}).code, 2);
  EXPECT_EQ(run(throwing([] { fail<UsageError>("x"); }), {"group", "work"}).code, 2);
}

TEST(Command, FailuresAreOneAndPrintTheError) {
  auto result = [](std::function<void()> action) { return run(throwing(action), {"group", "work"}); };
  Result plain = result([] { fail("matmul: inner dimensions differ"); });
  EXPECT_EQ(plain.code, 1);
  EXPECT_EQ(plain.err, "error: matmul: inner dimensions differ\n");
  Result format = result([] { fail<FormatError>("a.gguf: bad magic"); });
  EXPECT_EQ(format.code, 1);
  EXPECT_THAT(format.err, StartsWith("error: a.gguf: bad magic\nhint: "));
  EXPECT_EQ(result([] { throw std::bad_alloc(); }).code, 1);
  EXPECT_EQ(result([] { fail<OutOfMemory>("table"); }).err, "error: table\n");
  EXPECT_EQ(result([] { throw std::runtime_error("bad \x1b[2J"); }).err, "error: bad \uFFFD[2J\n");
}

TEST(Command, CudaNeedsABuildWithIt) {
  CommonOptions options;
  options.device = "cuda";
  if (build_info().cuda != "OFF") {
    EXPECT_EQ(options.resolved_device(), "cuda");
    return;
  }
  Result result = run(throwing([] {}), {"group", "work", "--device", "cuda"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err,
              StartsWith("error: --device: this program is built without CUDA, got cuda; use --device cpu"));
  EXPECT_EQ(CommonOptions{}.resolved_device(), "cpu");
}

void for_each_command(const Command& command, const std::string& path,
                      const std::function<void(const Command&, const std::string&)>& visit) {
  visit(command, path);
  for (const Command& child : command.commands) for_each_command(child, path + " " + child.text.name, visit);
}

TEST(RegisteredCommands, ExplainThemselves) {
  for_each_command(strata_program(), "strata", [](const Command& command, const std::string& path) {
    SCOPED_TRACE(path);
    EXPECT_FALSE(command.text.description.empty());
    EXPECT_NE(command.prepare == nullptr, command.commands.empty() && path != "strata");
    std::string help = help_text(command, path, 100);
    EXPECT_THAT(help, HasSubstr("\nEXAMPLES\n  " + path));
    EXPECT_THAT(help, testing::Not(HasSubstr("{command}")));
    std::vector<std::string> arguments{"--help"};
    for (size_t space = path.rfind(' '), end = path.size(); space != std::string::npos;
         end = space, space = path.rfind(' ', space - 1))
      arguments.insert(arguments.begin(), path.substr(space + 1, end - space - 1));
    Result result = run(strata_program(), arguments);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("EXAMPLES"));
  });
}

}  // namespace
}  // namespace strata::apps
