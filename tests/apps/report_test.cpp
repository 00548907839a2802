// The report as text: what is escaped, embedded and refused. In a browser, where one is installed: the charts are
// drawn.
#include "apps/common/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>

#include "apps/common/report/chart_data.h"
#include "tensor/error.h"
#include "tests/temporary_folder.h"

namespace strata::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

const char* kHostile = "</script><script>attack()</script><img src=x onerror=attack()> \" ' & <!-- \xff\x01 &lt;";

// A report of every kind of block, with hostile text in every place that takes text.
Report full_report(const std::string& text) {
  Report report(text, text);
  report.highlights({{text, text, text, Tone::good}});
  report.section(text).text(text + "\n\n" + text).callout(text).code(text).key_values({{text, text}});
  report.table({text, "n"}, {{text, "1"}, {text, "2"}}, text);
  report.chart({.title = text, .note = text, .x_label = text, .y_label = text, .series = {{text, {1, 2}, {3, 4}}}});
  report.bars(text, Unit::bytes, {{text, {{text, 5}}}}, text);
  report.comparison({{text, text, {text, text, Tone::bad}, {text, text, Tone::good}}});
  report.confusion({text, "b"}, {{1, 2}, {3, 4}});
  report.record({{text, false}, {text, true}});
  return report;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(Report, HostileTextStaysText) {
  std::string hostile = full_report(kHostile).html(), plain = full_report("plain").html();
  EXPECT_THAT(hostile, Not(HasSubstr("<script>attack")));
  EXPECT_THAT(hostile, Not(HasSubstr("<img")));
  EXPECT_THAT(hostile, Not(HasSubstr("\xff")));
  EXPECT_THAT(hostile, Not(HasSubstr("\x01")));
  // The same tags as a report of harmless text: no tag, attribute or comment was opened or closed by the text.
  for (const char* markup : {"<", ">", "<script", "</script>", "<!--"})
    EXPECT_EQ(count(hostile, markup), count(plain, markup)) << markup;
  EXPECT_EQ(count(hostile, "\"") - count(hostile, "\\\""), count(plain, "\"") - count(plain, "\\\""));  // \" is JSON's
}

TEST(Report, EscapesEveryMarkupCharacter) {
  EXPECT_EQ(escape_html("<a href=\"x\" b='y'>&amp;\n\tz\r\x1b"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;\n\tz\uFFFD\uFFFD");
  EXPECT_EQ(script_json(Json("</script><!-- & \u2028")), "\"\\u003c/script\\u003e\\u003c!-- \\u0026 \u2028\"");
}

TEST(Report, LoadsNothingFromAnywhere) {
  std::string html = full_report("plain").html();
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  // uPlot names its home page in its banner comment; nothing else may look like an address.
  std::string banner = "/*! https://github.com/leeoniya/uPlot (v1.6.32) */";
  ASSERT_EQ(count(html, banner), 1u);
  html.erase(html.find(banner), banner.size());
  EXPECT_THAT(html, Not(HasSubstr("http:")));
  EXPECT_THAT(html, Not(HasSubstr("https:")));
  std::regex loads(
      R"re((src|href)\s*=\s*["']?(?!#)[^"'\s>]|@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\()re");
  std::smatch match;
  EXPECT_FALSE(std::regex_search(html, match, loads)) << match.str();
  EXPECT_THAT(html, HasSubstr("Copyright (c) 2022 Leon Sorokin"));  // the licence travels with the script
}

TEST(Report, ChartsWithoutScriptsAreNotEmbedded) {
  Report report("no charts");
  report.text("words");
  EXPECT_THAT(report.html(), Not(HasSubstr("uPlot=")));
  EXPECT_LT(report.html().size(), 40000u);  // uPlot alone has 51,000
}

TEST(Report, SectionsNestAndAreListed) {
  Report report("t");
  report.text("before").section("One").chart({.title = "a"}).chart({.title = "b"}).text("after").section("Two");
  std::string html = report.html();
  EXPECT_THAT(html, HasSubstr("<a href=\"#section-2\">Two</a>"));
  EXPECT_EQ(count(html, "<section"), count(html, "</section>"));
  EXPECT_EQ(count(html, "<div"), count(html, "</div>"));
  EXPECT_EQ(count(html, "<div class=\"charts\">"), 1u);
}

TEST(Report, ChartDataKeepsSpikesAndNamesGaps) {
  Series series{"loss", {}, {}};
  for (int i = 0; i < 100000; ++i) {
    series.x.push_back(i);
    series.y.push_back(1 + 1e-3 * (i % 7));
  }
  series.y[51234] = 99;
  series.y[61234] = -5;
  series.y[77] = std::nan("");
  ChartData data = chart_data({.title = "t", .series = {series}});
  Json shown = Json::parse(data.json, "chart").at("series").items()[0];
  EXPECT_LE(shown.at("x").size(), 4000u);
  EXPECT_GE(shown.at("x").size(), 2000u);
  double low = 1e9, high = -1e9;
  for (const Json& y : shown.at("y").items()) {
    low = std::min(low, y.as_double());
    high = std::max(high, y.as_double());
  }
  EXPECT_EQ(high, 99);
  EXPECT_EQ(low, -5);
  EXPECT_THAT(data.remarks, testing::ElementsAre("1 values are not finite and leave gaps.",
                                                 "Long curves show the lowest and highest point of each stretch."));
}

TEST(Report, ChartDataIsCompactAndExactWhereItMatters) {
  ChartData data = chart_data({.title = "t",
                               .y_label = "loss",
                               .unit = Unit::bytes,
                               .series = {{"a", {1, 2, 3}, {0.1234567891, INFINITY, 1e-9}}},
                               .log_y = true});
  EXPECT_EQ(data.json, R"({"x": "step", "unit": "bytes", "log": true, "smooth": false, "stacked": false, )"
                       R"("series": [{"name": "a", "x": [1, 2, 3], "y": [0.123457, null, 1e-09]}]})");
  EXPECT_TRUE(chart_data({.title = "t", .series = {{"a", {1}, {NAN}}}}).empty);
  EXPECT_TRUE(chart_data({.title = "t"}).empty);
}

TEST(Report, RefusesWhatCannotBeDrawn) {
  Report report("t");
  EXPECT_THROW(report.chart({.title = "t", .series = {{"a", {1, 2}, {1}}}}), Error);
  EXPECT_THROW(report.chart({.title = "t", .series = {{"a", {2, 1}, {1, 1}}}}), Error);
  EXPECT_THROW(report.chart({.title = "t", .series = {{"a", {1}, {1}}, {"b", {2}, {1}}}, .stacked = true}), Error);
  EXPECT_THROW(report.table({"a", "b"}, {{"1"}}), Error);
  EXPECT_THROW(report.bars("t", Unit::bytes, {{"a", {{"p", -1}}}}), Error);
  EXPECT_THROW(report.confusion({"a", "b"}, {{1, 2}}), Error);
}

TEST(Report, RunDetailsCanBePastedIntoAShell) {
  Report report("t");
  add_run_details(report, Json::parse(R"({"command_line": ["strata", "generate", "--prompt", "it's $HOME", "a=b", ""],
      "status": "finished", "started": "2026-01-31T14:25:30+0000", "ended": null, "seed": 18446744073709551615,
      "build": {"version": "0.1.0", "git_revision": null, "type": "Release", "compiler": "GNU 12.2.0", "flags": "-O3"},
      "machine": {"cpu": "A CPU", "logical_cores": 2, "memory_bytes": 17179869184, "system": "Debian"},
      "libraries": {"openblas": "OpenBLAS 0.3.21"}})",
                                      "run.json"));
  std::string html = report.html();
  EXPECT_THAT(html,
              HasSubstr("<pre>strata generate --prompt &#39;it&#39;\\&#39;&#39;s $HOME&#39; a=b &#39;&#39;</pre>"));
  EXPECT_THAT(html, HasSubstr("<dt>seed</dt><dd>18446744073709551615</dd>"));
  EXPECT_THAT(html, HasSubstr("<dt>memory</dt><dd>16.0 GiB</dd>"));
}

// Loads the page in a real browser and returns the document after its scripts ran.
std::string browser_document(const std::filesystem::path& page, const std::filesystem::path& profile) {
  std::string command =
      "timeout 100 chromium --headless --no-sandbox --disable-gpu --user-data-dir=" + profile.string() +
      " --virtual-time-budget=3000 --dump-dom file://" + page.string() + " 2>/dev/null";
  std::string document;
  FILE* out = popen(command.c_str(), "r");
  if (!out) return "";
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, out)) > 0;) document.append(buffer, n);
  pclose(out);
  return document;
}

TEST(Report, ABrowserDrawsEveryChart) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) GTEST_SKIP() << "no chromium on this machine";
  test::TemporaryFolder folder;
  Report report = full_report(kHostile);
  std::vector<double> x, loss, validation;
  for (int i = 1; i <= 300; ++i) {
    x.push_back(i);
    loss.push_back(3 / std::sqrt(i));
  }
  report.section("More").chart(
      {.title = "smooth", .series = {{"a", x, loss}, {"b", {50, 300}, {1, 2}}}, .smooth = true});
  report.chart({.title = "log", .series = {{"a", x, loss}}, .log_y = true});
  report.chart({.title = "stacked", .unit = Unit::bytes, .series = {{"a", x, loss}, {"b", x, loss}}, .stacked = true});
  report.chart({.title = "nothing"});
  report.write(folder / "report.html");
  std::string document = browser_document(folder / "report.html", folder / "profile");
  EXPECT_EQ(count(document, "<canvas"), 4u);  // all but the empty one
  EXPECT_EQ(count(document, "<script"), 7u);  // five charts, uPlot, ours: the text added none
  EXPECT_EQ(count(document, "aria-pressed=\"true\">"), 2u);
  EXPECT_THAT(document, Not(HasSubstr("<img")));
}

}  // namespace
}  // namespace strata::apps
