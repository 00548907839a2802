#include "apps/common/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "apps/common/flag_config.h"
#include "tensor/error.h"
#include "tests/temporary_folder.h"

namespace strata::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Schedule { cosine, linear };

struct Options {
  double lr = 2e-4;
  int64_t epochs = 3;
  bool packing = false, shuffle = true;
  std::string prompt = "hi";
  std::optional<int64_t> max_steps;
  std::vector<std::string> prompts, targets{"q_proj", "v_proj"};
  std::vector<int64_t> sizes{1, 2};
  Schedule schedule = Schedule::cosine;
  std::filesystem::path model, file;
};

// Parses the arguments of "strata finetune lora"; `error` is the UsageError's text.
struct Parsed {
  explicit Parsed(const std::vector<std::string>& arguments, bool required = false) : flags("strata finetune lora") {
    flags.section("training");
    flags.add("--lr", o.lr, "peak learning rate").above(0).below(1);
    flags.add("-e,--epochs", o.epochs, "passes over the data").at_least(1).at_most(1000);
    flags.add("--packing", o.packing, "several records per sequence");
    flags.add("--shuffle", o.shuffle, "new order each epoch");
    flags.add("--max-steps", o.max_steps, "stop after this many steps");
    flags.add("--schedule", o.schedule, "learning rate over time",
              {{"cosine", Schedule::cosine}, {"linear", Schedule::linear}});
    flags.section("data");
    flags.add("--prompt", o.prompt, "text");
    flags.add("--prompts", o.prompts, "texts");
    flags.add("--targets", o.targets, "projections with an adapter").comma_separated();
    flags.add("--sizes", o.sizes, "sizes").at_least(0);
    Flag& model = flags.add("-m,--model", o.model, "model folder");
    if (required) model.required();
    flags.positional("FILE", o.file, "what to read");
    try {
      result = flags.parse(arguments);
    } catch (const UsageError& e) {
      error = e.what();
    }
  }
  Options o;
  Flags flags;
  Flags::Parsed result = Flags::Parsed::run;
  std::string error;
};

TEST(Flags, SetsEveryKindOfValue) {
  Parsed p({"--lr", "1e-3", "-e", "5", "--packing", "--no-shuffle", "--max-steps=10", "--schedule", "linear",
            "--targets", "k_proj,o_proj", "--sizes=3,4,5", "--prompts", "a, b", "--prompts", "c", "-m", "dir",
            "in.txt"});
  EXPECT_EQ(p.error, "");
  EXPECT_EQ(p.o.lr, 1e-3);
  EXPECT_EQ(p.o.epochs, 5);
  EXPECT_TRUE(p.o.packing);
  EXPECT_FALSE(p.o.shuffle);
  EXPECT_EQ(p.o.max_steps, 10);
  EXPECT_EQ(p.o.schedule, Schedule::linear);
  EXPECT_THAT(p.o.targets, ElementsAre("k_proj", "o_proj"));
  EXPECT_THAT(p.o.sizes, ElementsAre(3, 4, 5));
  EXPECT_THAT(p.o.prompts, ElementsAre("a, b", "c"));  // not split: a text may hold commas
  EXPECT_EQ(p.o.model, "dir");
  EXPECT_EQ(p.o.file, "in.txt");
}

TEST(Flags, DefaultsStayWhenNothingIsGiven) {
  Parsed p({});
  EXPECT_EQ(p.error, "");
  EXPECT_EQ(p.o.lr, 2e-4);
  EXPECT_FALSE(p.o.max_steps.has_value());
  EXPECT_THAT(p.o.targets, ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(
      p.flags.values().dump(),
      R"({"lr": 0.0002, "epochs": 3, "packing": false, "shuffle": true, "max-steps": null, "schedule": "cosine", )"
      R"("prompt": "hi", "prompts": [], "targets": ["q_proj", "v_proj"], "sizes": [1, 2], "model": null, "FILE": null})");
}

TEST(Flags, ValuesMayLookLikeFlags) {
  EXPECT_EQ(Parsed({"--prompt", "-x --lr"}).o.prompt, "-x --lr");
  EXPECT_EQ(Parsed({"--prompt", "--lr"}).o.prompt, "--lr");
  EXPECT_EQ(Parsed({"--prompt", ""}).o.prompt, "");
  EXPECT_EQ(Parsed({"--prompt="}).o.prompt, "");
  EXPECT_EQ(Parsed({"--prompt=a=b"}).o.prompt, "a=b");
  EXPECT_EQ(Parsed({"--prompt", "[a,b]"}).o.prompt, "[a,b]");
  EXPECT_EQ(Parsed({"--prompt", "{x}"}).o.prompt, "{x}");
  EXPECT_EQ(Parsed({"--prompt", "\"quoted\""}).o.prompt, "\"quoted\"");
  EXPECT_EQ(Parsed({"--", "--lr"}).o.file, "--lr");
  EXPECT_EQ(Parsed({"--prompt", "a\\nb"}).o.prompt, "a\\nb");  // no escapes: four characters stay four
}

TEST(Flags, TheLastOfTwoCounts) {
  EXPECT_EQ(Parsed({"--lr", "0.1", "--lr", "0.2"}).o.lr, 0.2);
  EXPECT_FALSE(Parsed({"--packing", "--no-packing"}).o.packing);
  EXPECT_TRUE(Parsed({"--no-packing", "--packing"}).o.packing);
  EXPECT_FALSE(Parsed({"--packing=false"}).o.packing);
}

TEST(Flags, ErrorsNameTheFlagAndWhatWasGiven) {
  EXPECT_EQ(Parsed({"--lr", "abc"}).error, "--lr: expected a number, got 'abc'");
  EXPECT_EQ(Parsed({"--lr", "1x"}).error, "--lr: expected a number, got '1x'");
  EXPECT_EQ(Parsed({"--lr", "nan"}).error, "--lr: expected a finite number, got 'nan'");
  EXPECT_EQ(Parsed({"--lr", "1e999"}).error, "--lr: number out of range, got '1e999'");
  EXPECT_EQ(Parsed({"--lr", "0"}).error, "--lr: must be above 0, got 0");
  EXPECT_EQ(Parsed({"--lr", "1"}).error, "--lr: must be below 1, got 1");
  EXPECT_EQ(Parsed({"--lr"}).error, "--lr: expected a value");
  EXPECT_EQ(Parsed({"--epochs", "1.5"}).error, "--epochs: expected a whole number, got '1.5'");
  EXPECT_EQ(Parsed({"--epochs", "0"}).error, "--epochs: must be at least 1, got 0");
  EXPECT_EQ(Parsed({"--epochs", "010"}).o.epochs, 10);  // decimal, never octal
  EXPECT_EQ(Parsed({"--epochs", "99999999999999999999"}).error,
            "--epochs: number out of range, got '99999999999999999999'");
  EXPECT_EQ(Parsed({"--sizes", "1,,2"}).error, "--sizes: expected a whole number, got ''");
  EXPECT_EQ(Parsed({"--sizes", "1,-2"}).error, "--sizes: must be at least 0, got -2");
  EXPECT_EQ(Parsed({"--schedule", "cosin"}).error,
            "--schedule: must be one of cosine, linear, got 'cosin' (did you mean cosine?)");
  EXPECT_EQ(Parsed({"--packing=maybe"}).error, "--packing: expected true or false, got 'maybe'");
  EXPECT_EQ(Parsed({"a", "b"}).error, "unexpected argument 'b'");
  EXPECT_EQ(Parsed({}, true).error, "required but not given: --model PATH (model folder)");
}

TEST(Flags, UnknownFlagSuggestsTheNearest) {
  EXPECT_EQ(Parsed({"--epoch", "3"}).error, "unknown flag --epoch (did you mean --epochs?)");
  EXPECT_EQ(Parsed({"--max_steps=3"}).error, "unknown flag --max_steps (did you mean --max-steps?)");
  EXPECT_EQ(Parsed({"--sched", "x"}).error, "unknown flag --sched (did you mean --schedule?)");
  EXPECT_EQ(Parsed({"--quantum"}).error, "unknown flag --quantum");
  EXPECT_EQ(Parsed({"-q"}).error, "unknown flag -q");
  EXPECT_EQ(nearest_name("lora", {"qlora", "full"}), "qlora");
  EXPECT_EQ(nearest_name("", {"a"}), "a");
  EXPECT_EQ(nearest_name("xyz", {}), "");
}

TEST(Flags, HelpShowsEveryFlagWithItsDefault) {
  Parsed p({"--help"});
  EXPECT_EQ(p.result, Flags::Parsed::help);
  std::string help = p.flags.help(100);
  EXPECT_THAT(help, HasSubstr("TRAINING\n  --lr X                      peak learning rate (default 0.0002)\n"));
  EXPECT_THAT(help, HasSubstr("  -e, --epochs N              passes over the data (default 3)\n"));
  EXPECT_THAT(help, HasSubstr("  --packing                   several records per sequence\n"));
  EXPECT_THAT(help, HasSubstr("  --no-shuffle                new order each epoch (on unless this is given)\n"));
  EXPECT_THAT(help, HasSubstr("learning rate over time: cosine, linear (default cosine)\n"));
  EXPECT_THAT(help, HasSubstr("projections with an adapter (default q_proj,v_proj)\n"));
  EXPECT_THAT(help, HasSubstr("ARGUMENTS\n  FILE"));
  EXPECT_THAT(help, HasSubstr("--config FILE"));
  EXPECT_EQ(p.flags.usage(), "strata finetune lora [FILE] [flags]");
  for (const char* line = help.c_str(); *line; line = std::strchr(line, '\n') + 1)
    EXPECT_LE(std::strchr(line, '\n') - line, 100);
}

TEST(Flags, ExistingPathIsChecked) {
  std::filesystem::path path;
  Flags flags("x");
  flags.add("--data", path, "data").existing();
  EXPECT_THROW(flags.parse({"--data", "/no/such/file"}), UsageError);
  EXPECT_EQ(flags.parse({"--data", "/"}), Flags::Parsed::run);
}

TEST(Flags, ConditionsBetweenFlagsRunAtTheEnd) {
  int a = 0, b = 0;
  Flags flags("x");
  flags.add("--a", a, "a");
  flags.add("--b", b, "b");
  flags.check_after([&] { check<UsageError>(a <= b, "--a: must be at most --b, got {} and {}", a, b); });
  EXPECT_THROW(flags.parse({"--a", "2", "--b", "1"}), UsageError);
  EXPECT_EQ(flags.parse({"--a", "2", "--b", "3"}), Flags::Parsed::run);
}

// ---- --config -----------------------------------------------------------------------------------------------------

class Config : public testing::Test {
 protected:
  std::string write_config(const std::string& text, const std::string& name = "flags.toml") {
    return folder_.write(name, text).string();
  }
  test::TemporaryFolder folder_;
};

TEST_F(Config, GivesFlagsThatTheCommandLineDoesNot) {
  std::string path = write_config(R"(# a comment
lr = 0.5          # the rate
max_steps = 7     ; underscores are fine
packing = true
shuffle = off
prompt = "a # b; \"c\", d = e\n"
prompts = ['one, two',
           "three"]  # over lines
targets = ["k_proj"]
model = bare word
)");
  Parsed p({"--config", path, "--lr", "0.25"});
  EXPECT_EQ(p.error, "");
  EXPECT_EQ(p.o.lr, 0.25);
  EXPECT_EQ(p.o.max_steps, 7);
  EXPECT_TRUE(p.o.packing);
  EXPECT_FALSE(p.o.shuffle);
  EXPECT_EQ(p.o.prompt, "a # b; \"c\", d = e\n");
  EXPECT_THAT(p.o.prompts, ElementsAre("one, two", "three"));
  EXPECT_THAT(p.o.targets, ElementsAre("k_proj"));
  EXPECT_EQ(p.o.model, "bare word");
  EXPECT_EQ(Parsed({"--config=" + path}).o.lr, 0.5);
}

TEST_F(Config, SectionsAreForTheirCommand) {
  std::string path =
      write_config("lr = 0.1\n[finetune.lora]\nepochs = 9\n[lora]\npacking = true\n[generate]\ntop-k = 5\n");
  Parsed p({"--config", path});
  EXPECT_EQ(p.error, "");
  EXPECT_EQ(p.o.epochs, 9);
  EXPECT_TRUE(p.o.packing);
}

TEST_F(Config, SatisfiesRequiredFlags) {
  EXPECT_EQ(Parsed({"--config", write_config("model = m\n")}, true).error, "");
}

TEST_F(Config, ErrorsNameFileAndLine) {
  auto error = [&](const std::string& text) { return Parsed({"--config", write_config(text)}).error; };
  std::string place = (folder_ / "flags.toml").string() + ":";
  EXPECT_EQ(error("lr = 0.1\nepoch = 2\n"), place + "2: unknown flag 'epoch' (did you mean epochs?)");
  EXPECT_EQ(error("lr\n"), place + "1: expected name = value, got the end of the line");
  EXPECT_EQ(error("lr = [0.1, 0.2]\n"), place + "1: lr takes one value, got 2");
  EXPECT_EQ(error("prompt = \"open\n"), place + "1: expected a closing quote, got the end of the line");
  EXPECT_EQ(error("targets = [a, b"), place + "1: expected , or ] after a value, got the end of the file");
  EXPECT_EQ(error("prompt = \"a\" b\n"), place + "1: expected the end of the line, got 'b'");
  EXPECT_EQ(error("prompt = \"\\q\"\n"), place + "1: expected one of \\\" \\\\ \\n \\t \\r, got 'q\"'");
  EXPECT_EQ(error("lr = \n"), place + "1: expected a value (\"\" for an empty text), got the end of the line");
  EXPECT_EQ(error("lr = abc\n"), "--lr: expected a number, got 'abc'");
  EXPECT_THAT(Parsed({"--config", "/no/such"}).error, HasSubstr("cannot open file '/no/such'"));
}

TEST_F(Config, RepeatsARunFromItsRunJson) {
  Parsed first({"--lr", "0.125", "--sizes", "7", "--prompt", "x \"y\""});
  Json run = Json::object().set("config", first.flags.values().set("out", "runs/1"));
  Parsed again({"--config", write_config(run.dump(2), "run.json")});
  EXPECT_EQ(again.error, "");
  EXPECT_EQ(again.flags.values().dump(), first.flags.values().dump());
  EXPECT_EQ(Parsed({"--config", write_config(run.dump(2), "run.json"), "--lr", "0.5"}).o.lr, 0.5);
}

}  // namespace
}  // namespace strata::apps
