// What the text of a source must not hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <regex>

#include "tests/lint/source_tree.h"

namespace strata::lint {
namespace {

using testing::IsEmpty;

// The line without its // comment and without the contents of string literals.
std::string code_of(const std::string& line) {
  std::string code;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"' && !(i > 0 && line[i - 1] == '\'')) {
      quoted = !quoted;
      code += '"';
    } else if (!quoted) {
      if (line.compare(i, 2, "//") == 0) break;
      code += line[i];
    }
  }
  return code;
}

// The library returns values and throws; it leaves terminal, environment and process to the programs.
const std::regex kOutside(
    R"re(#\s*include\s*<(iostream|print)>|\b(std::)?(printf|fprintf|puts|fputs|putchar|exit|_exit|quick_exit|abort|getenv|setenv|system)\s*\(|\bfmt::print(ln)?\s*\(|\bstd::(cout|cerr|clog)\b)re");

const std::regex kUnfinished(R"re(\b(TO)re"
                             R"re(DO|FIX)re"
                             R"re(ME|XX)re"
                             R"re(X)\b)re");

TEST(Text, RulesCatchWhatTheyShould) {
  EXPECT_TRUE(std::regex_search(code_of("  std::cout << x;"), kOutside));
  EXPECT_TRUE(std::regex_search(code_of("  if (bad) exit(1);"), kOutside));
  EXPECT_TRUE(std::regex_search(code_of("  fmt::print(stderr, \"x\");"), kOutside));
  EXPECT_FALSE(std::regex_search(code_of("  on_exit(f);  // never calls exit()"), kOutside));
  EXPECT_FALSE(std::regex_search(code_of("  fail(\"use printf(3)\");"), kOutside));
  EXPECT_FALSE(std::regex_search(code_of("  std::snprintf(buffer, n, \"%d\", i);"), kOutside));
  EXPECT_TRUE(std::regex_search(std::string("// TO") + "DO: later", kUnfinished));
}

TEST(Text, LibraryNeitherPrintsNorExitsNorReadsTheEnvironment) {
  EXPECT_THAT(lines_where([](const SourceFile& file, const std::string& line) {
                return is_library(file) && std::regex_search(code_of(line), kOutside);
              }),
              IsEmpty());
}

TEST(Text, NothingIsLeftForLater) {
  EXPECT_THAT(
      lines_where([](const SourceFile&, const std::string& line) { return std::regex_search(line, kUnfinished); }),
      IsEmpty());
}

TEST(Text, HeadersHavePragmaOnce) {
  EXPECT_THAT(files_where([](const SourceFile& file) {
                bool header = file.extension() == ".h" || file.extension() == ".cuh";
                return header && std::find(file.lines.begin(), file.lines.end(), "#pragma once") == file.lines.end();
              }),
              IsEmpty());
}

// 500 lines still read in one sitting; longer files are named in the output, and at 800 it ends.
TEST(Text, FilesAreShort) {
  for (const std::string& path : files_where([](const SourceFile& file) { return file.lines.size() > 500; }))
    std::cout << "over 500 lines: " << path << "\n";
  EXPECT_THAT(files_where([](const SourceFile& file) { return file.lines.size() > 800; }), IsEmpty());
}

}  // namespace
}  // namespace strata::lint
