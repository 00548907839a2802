// `strata report` over run folders that RunFolder wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "apps/commands.h"
#include "apps/common/run_folder.h"
#include "tests/temporary_folder.h"

namespace strata::apps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class ReportCommandTest : public testing::Test {
 protected:
  fs::path make_run(const std::string& name, double lr, int steps) {
    Invocation invocation{
        "strata finetune lora", {"strata", "finetune", "lora"}, Json::object().set("lr", lr).set("rank", 16)};
    RunFolder run(invocation, {.out = folder_ / name});
    for (int step = 1; step <= steps; ++step)
      run.log(step, Json::object()
                        .set("loss", step == 2 ? std::nan("") : lr / step)
                        .set("memory", Json::object().set("parameter", 1000).set("activation", step)));
    run.finish();
    return run.path();
  }

  struct Result {
    int code;
    std::string out, err, page;
  };
  Result report(std::vector<std::string> arguments, const fs::path& page) {
    arguments.insert(arguments.begin(), "report");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Result result{run_program(strata_program(), arguments), "", "", ""};
    result.out = testing::internal::GetCapturedStdout();
    result.err = testing::internal::GetCapturedStderr();
    result.page = test::read_file(page);
    return result;
  }

  test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(ReportCommandTest, OneRunGetsItsCurvesAndDetails) {
  fs::path run = make_run("a", 0.5, 3);
  Result result = report({run.string()}, run / "curves.html");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, (run / "curves.html").string() + "\n");
  EXPECT_THAT(result.page, HasSubstr(R"({"name": "a", "x": [1, 2, 3], "y": [0.5, null, 0.166667]})"));
  EXPECT_THAT(result.page, HasSubstr(R"({"name": "parameter", "x": [1, 2, 3], "y": [1000, 1000, 1000]})"));
  EXPECT_THAT(result.page, HasSubstr(R"({"name": "activation", "x": [1, 2, 3], "y": [1, 2, 3]})"));
  EXPECT_THAT(result.page, HasSubstr("How to repeat this"));
}

TEST_F(ReportCommandTest, SeveralRunsShareChartsAndShowWhatDiffers) {
  fs::path a = make_run("a", 0.5, 3), b = make_run("b", 0.25, 2), out = folder_ / "x.html";
  Result result = report({a.string(), b.string(), "--out", out.string()}, out);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.page, HasSubstr("2 runs compared"));
  EXPECT_THAT(result.page, HasSubstr(R"([{"name": "a", "x": [1, 2, 3], "y": [0.5, null, 0.166667]}, )"
                                     R"({"name": "b", "x": [1, 2], "y": [0.25, null]}])"));
  EXPECT_THAT(result.page, HasSubstr(">--lr</th>"));
  EXPECT_THAT(result.page, Not(HasSubstr(">--rank</th>")));
  EXPECT_THAT(result.page, HasSubstr("<td class=\"n\">0.25</td><td class=\"n\">nan</td>"));
}

TEST_F(ReportCommandTest, SaysWhatIsNoRun) {
  EXPECT_EQ(report({}, "").code, 2);
  Result result = report({folder_.string()}, "");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("report: " + folder_.string() + " is no run folder (it has no run.json)"));
  fs::path run = make_run("empty", 1, 0);
  EXPECT_THAT(report({run.string()}, run / "curves.html").page, HasSubstr("Nothing was logged yet."));
  std::ofstream(run / "metrics.jsonl") << "{\"step\": 1}\nnonsense\n";
  result = report({run.string()}, "");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("metrics.jsonl:2: not valid JSON"));
}

}  // namespace
}  // namespace strata::apps
