#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/program.h"

namespace strata {
namespace {

using namespace strata::test;  // NOLINT
using testing::HasSubstr;

std::string generate(const std::string& more) {
  return "generate --threads 1 -q --model " + stories() + " " + more;
}

TEST(Generate, ContinuesAndRepeats) {
  Outcome o = strata(generate("-n 20 --prompt 'Once upon a time'"));
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_EQ(o.output, ", there was a little girl named Lily. She loved to play outsid\n");
  std::string sampled = generate("-n 30 --temperature 1 --seed 3 --prompt 'Once upon a time'");
  EXPECT_EQ(strata(sampled).output, strata(sampled).output);
}

TEST(Generate, PromptsAreLiteralUnlessEscapesAreAskedFor) {
  Scratch s;
  write_file(s / "literal", "a\\nb");
  write_file(s / "line", "a\nb");
  auto out = [&](const std::string& prompt) { return strata(generate("-n 12 " + prompt)).output; };
  EXPECT_EQ(out("--prompt 'a\\nb'"), out("--prompt-file " + (s / "literal")));
  EXPECT_EQ(out("--escape --prompt 'a\\nb'"), out("--prompt-file " + (s / "line")));
  EXPECT_EQ(strata("generate --threads 1 -n 1 --model " + stories() + " --prompt 'a\\nb'").output.substr(0, 4),
            "a\\nb");
}

TEST(Generate, ErrorsTellWhatToDo) {
  Outcome o = strata(generate("--prompt x --temperature -1"));
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_THAT(o.output, HasSubstr("--temperature"));
  Scratch s;
  write_file(s / "long", std::string(8000, 'x'));
  o = strata(generate("--prompt-file " + (s / "long")));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.output, HasSubstr("the model's context is 512"));
  write_file(s / "bad.gguf", "GGUF");
  for (const char* command : {"generate --prompt x --model ", "inspect "}) {
    o = strata(command + (s / "bad.gguf"));
    EXPECT_EQ(o.exit_code, 1) << o.output;
    EXPECT_THAT(o.output, HasSubstr("bad.gguf"));
  }
}

TEST(Inspect, ShowsModelFolders) {
  Outcome o = strata("inspect " + stories());
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_THAT(o.output, HasSubstr("model.embed_tokens.weight"));
  EXPECT_THAT(o.output, HasSubstr("[512, 64]"));
}

TEST(Evaluate, PerplexityOfAText) {
  Scratch s;
  write_file(s / "t.txt", "Once upon a time, there was a little girl named Anna. She had a small red ball.");
  Outcome o = strata("evaluate --threads 1 --model " + stories() + " --text " + (s / "t.txt"));
  EXPECT_EQ(o.exit_code, 0) << o.output;
  EXPECT_THAT(o.output, HasSubstr("perplexity"));
  EXPECT_EQ(strata("evaluate --model " + stories()).exit_code, 2);
}

}  // namespace
}  // namespace strata
