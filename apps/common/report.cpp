#include "apps/common/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/common/build_info.h"
#include "apps/common/human.h"
#include "apps/common/report/assets.h"
#include "apps/common/report/chart_data.h"
#include "tensor/error.h"
#include "tensor/io/atomic_file.h"

namespace strata::apps {

namespace {

const char* tone_class(Tone tone) {
  switch (tone) {
    case Tone::good: return " good";
    case Tone::warning: return " warning";
    case Tone::bad: return " bad";
    case Tone::neutral: break;
  }
  return "";
}

// <tag class="...">text</tag>, the text escaped.
std::string element(const char* tag, const std::string& classes, std::string_view text) {
  std::string attribute = classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
  return fmt::format("<{}{}>{}</{}>", tag, attribute, escape_html(text), tag);
}

std::string optional_element(const char* tag, const std::string& classes, std::string_view text) {
  return text.empty() ? "" : element(tag, classes, text);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (char c : printable(text, "\n\t")) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

Report::Report(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

Report& Report::add(std::string html) {
  close_charts();
  body_ += html + '\n';
  return *this;
}

void Report::close_charts() {
  if (in_charts_) body_ += "</div>\n";
  in_charts_ = false;
}

Report& Report::highlights(const std::vector<Highlight>& figures) {
  std::string html = "<dl class=\"highlights\">";
  for (const Highlight& h : figures)
    html += fmt::format("<div class=\"highlight{}\">{}{}{}</div>", tone_class(h.tone), element("dt", "", h.label),
                        element("dd", "value", h.value), optional_element("dd", "note", h.note));
  return add(html + "</dl>");
}

Report& Report::section(const std::string& title) {
  close_charts();
  if (!sections_.empty()) body_ += "</section>\n";
  sections_.push_back(title);
  return add(fmt::format("<section id=\"section-{}\">{}", sections_.size(), element("h2", "", title)));
}

Report& Report::text(std::string_view paragraphs) {
  std::string html;
  while (!paragraphs.empty()) {
    size_t end = std::min(paragraphs.find("\n\n"), paragraphs.size());
    html += optional_element("p", "", paragraphs.substr(0, end));
    paragraphs.remove_prefix(std::min(end + 2, paragraphs.size()));
  }
  return add(html);
}

Report& Report::callout(const std::string& text, Tone tone) {
  return add(fmt::format("<p class=\"callout{}\">{}</p>", tone_class(tone), escape_html(text)));
}

Report& Report::code(std::string_view text) {
  return add(element("pre", "", text));
}

Report& Report::key_values(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string html = "<dl class=\"pairs\">";
  for (const auto& [key, value] : pairs) html += element("dt", "", key) + element("dd", "", value);
  return add(html + "</dl>");
}

Report& Report::table(const std::vector<std::string>& headers, const std::vector<std::vector<std::string>>& rows,
                      const std::string& caption) {
  std::vector<const char*> classes;
  for (size_t c = 0; c < headers.size(); ++c) {
    bool numbers = std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      check(row.size() == headers.size(), "report table: a row needs {} cells, got {}", headers.size(), row.size());
      return looks_like_number(row[c]);
    });
    classes.push_back(numbers ? "n" : "");
  }
  std::string html = "<div class=\"scroll\"><table class=\"sortable\">" + optional_element("caption", "", caption);
  html += "<thead><tr>";
  for (size_t c = 0; c < headers.size(); ++c) html += element("th", classes[c], headers[c]);
  html += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (size_t c = 0; c < headers.size(); ++c) html += element("td", classes[c], row[c]);
    html += "</tr>\n";
  }
  return add(html + "</tbody></table></div>");
}

Report& Report::chart(const Chart& chart) {
  if (!in_charts_) body_ += "<div class=\"charts\">\n";
  in_charts_ = true;
  ChartData data = chart_data(chart);
  std::string id = fmt::format("chart-{}", ++charts_);
  std::string note = chart.note;
  for (const std::string& remark : data.remarks) note += (note.empty() ? "" : " ") + remark;
  body_ += fmt::format(
      "<figure class=\"chart{}\"><figcaption>{}<span class=\"unit\">{}</span><span class=\"tools\"></span>{}"
      "</figcaption>{}<div class=\"plot\" data-chart=\"{}\"></div>"
      "<noscript><p>This chart needs JavaScript; its numbers are in metrics.jsonl beside this file.</p></noscript>"
      "<script type=\"application/json\" id=\"{}\">{}</script></figure>\n",
      chart.wide ? " wide" : "", element("strong", "", chart.title), escape_html(chart.y_label),
      optional_element("p", "note", note), data.empty ? "<p class=\"empty\">no data</p>" : "", id, id, data.json);
  return *this;
}

Report& Report::bars(const std::string& title, Unit unit, const std::vector<Bar>& bars, const std::string& note) {
  std::vector<std::string> kinds;  // in order of appearance: the colours
  double longest = 0;
  auto total = [](const Bar& bar) {
    return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0, [](double sum, auto& p) { return sum + p.second; });
  };
  for (const Bar& bar : bars) {
    longest = std::max(longest, total(bar));
    for (const auto& [kind, size] : bar.parts) {
      check(std::isfinite(size) && size >= 0, "report bars: a part must be at least 0, got {}", size);
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  auto colour = [&](const std::string& kind) {
    return (std::find(kinds.begin(), kinds.end(), kind) - kinds.begin()) % kColours + 1;
  };
  std::string html = "<figure class=\"bars\"><figcaption>" + element("strong", "", title) +
                     optional_element("p", "note", note) + "</figcaption>\n";
  for (const Bar& bar : bars) {
    html += fmt::format("<div class=\"bar\">{}<div class=\"track\">", element("span", "label", bar.label));
    for (const auto& [kind, size] : bar.parts)
      html += fmt::format(
          "<span class=\"part\" style=\"width:{:.3f}%;background:var(--series-{})\" title=\"{}: {}\"></span>",
          longest > 0 ? 100 * size / longest : 0, colour(kind), escape_html(kind), unit_text(unit, size));
    html += fmt::format("</div><span class=\"total\">{}</span></div>\n", unit_text(unit, total(bar)));
  }
  html += "<div class=\"scroll\"><table><thead><tr><th></th>";
  for (const Bar& bar : bars) html += element("th", "n", bar.label);
  html += "</tr></thead><tbody>";
  for (const std::string& kind : kinds) {
    html += fmt::format("<tr><td><span class=\"key\" style=\"background:var(--series-{})\"></span>{}</td>",
                        colour(kind), escape_html(kind));
    for (const Bar& bar : bars) {
      auto part = std::find_if(bar.parts.begin(), bar.parts.end(), [&](const auto& p) { return p.first == kind; });
      html += element("td", "n", part == bar.parts.end() ? "-" : unit_text(unit, part->second));
    }
    html += "</tr>";
  }
  html += "<tr class=\"sum\"><td>total</td>";
  for (const Bar& bar : bars) html += element("td", "n", unit_text(unit, total(bar)));
  return add(html + "</tr></tbody></table></div></figure>");
}

Report& Report::comparison(const std::vector<Comparison>& comparisons) {
  constexpr size_t kOpen = 12;  // more than that fold away
  auto answer = [](const char* heading, const Answer& a) {
    std::string badge = a.verdict.empty() ? "" : element("span", std::string("badge") + tone_class(a.tone), a.verdict);
    std::string text = a.text.empty() ? "<div class=\"answer none\">(empty)</div>" : element("div", "answer", a.text);
    return fmt::format("<div><h4>{}{}</h4>{}</div>", heading, badge, text);
  };
  std::string html = "<div class=\"comparisons\">\n";
  for (size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& c = comparisons[i];
    if (i == kOpen) html += fmt::format("<details><summary>{} more</summary>\n", comparisons.size() - kOpen);
    html += fmt::format(
        "<article class=\"comparison\"><div class=\"prompt\"><h4>{} of {}</h4>{}</div><div class=\"answers\">", i + 1,
        comparisons.size(), element("div", "answer", c.prompt));
    if (!c.expected.empty()) html += answer("Expected", {c.expected});
    html += answer("Base model", c.base) + answer("Tuned model", c.tuned) + "</div></article>\n";
  }
  if (comparisons.size() > kOpen) html += "</details>";
  return add(html + "</div>");
}

Report& Report::confusion(const std::vector<std::string>& labels, const std::vector<std::vector<int64_t>>& counts) {
  check(counts.size() == labels.size(), "report confusion: needs {} rows, got {}", labels.size(), counts.size());
  std::string html =
      "<div class=\"scroll\"><table class=\"confusion\"><caption>Rows: what it is. Columns: what the model says. "
      "Darker: more often, within the row.</caption><thead><tr><th></th>";
  for (const std::string& label : labels) html += element("th", "n", label);
  html += "<th class=\"n\">right</th></tr></thead><tbody>\n";
  for (size_t actual = 0; actual < labels.size(); ++actual) {
    const auto& row = counts[actual];
    check(row.size() == labels.size(), "report confusion: needs {} columns, got {}", labels.size(), row.size());
    auto sum = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    auto share = [&](size_t c) { return sum > 0 ? static_cast<double>(row[c]) / sum : 0.0; };
    html += "<tr>" + element("th", "", labels[actual]);
    for (size_t c = 0; c < labels.size(); ++c)
      html += fmt::format("<td class=\"n{}\" style=\"--share:{:.3f}\">{}</td>",
                          c == actual ? " hit"
                          : row[c]    ? " miss"
                                      : "",
                          share(c), row[c]);
    html += fmt::format("<td class=\"n\">{}</td></tr>\n", sum > 0 ? unit_text(Unit::percent, share(actual)) : "n/a");
  }
  return add(html + "</tbody></table></div>");
}

Report& Report::record(const std::vector<RecordPart>& parts) {
  std::string html = "<pre class=\"record\">";
  for (const RecordPart& part : parts) html += element("span", part.counted ? "counted" : "masked", part.text);
  return add(html +
             "</pre><p class=\"note\"><span class=\"record\"><span class=\"counted\">Marked</span></span>: counted in "
             "the loss, so the model learns to write it. The rest is only read.</p>");
}

std::string Report::html() const {
  std::string contents;
  if (sections_.size() > 1) {
    contents = "<nav>";
    for (size_t i = 0; i < sections_.size(); ++i)
      contents += fmt::format("<a href=\"#section-{}\">{}</a>", i + 1, escape_html(sections_[i]));
    contents += "</nav>";
  }
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // Even a text that slipped through could load nothing.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += fmt::format("<title>{}</title>\n<style>\n{}\n{}</style>\n</head>\n<body>\n", escape_html(title_),
                     asset_uplot_css(), asset_report_css());
  out += fmt::format("<header>{}{}</header>\n{}\n<main>\n{}", element("h1", "", title_),
                     optional_element("p", "subtitle", subtitle_), contents, body_);
  if (in_charts_) out += "</div>\n";
  if (!sections_.empty()) out += "</section>\n";
  out +=
      fmt::format("</main>\n<footer>Written by {}.{}</footer>\n", escape_html(version_line()),
                  charts_ ? " In a chart: drag to zoom, double-click to go back, click a name to hide its curve." : "");
  if (charts_) out += fmt::format("<script>\n/*\n{}*/\n{}\n</script>\n", asset_uplot_license(), asset_uplot_js());
  out += fmt::format("<script>\n{}</script>\n</body>\n</html>\n", asset_report_js());
  return out;
}

void Report::write(const std::filesystem::path& path) const {
  write_file_atomically(path, html());
}

namespace {
// The command line as it can be pasted into a shell.
std::string shell_text(const Json& arguments) {
  std::string out;
  for (const Json& argument : arguments.items()) {
    const std::string& word = argument.as_string();
    bool plain = !word.empty() && word.find_first_not_of(
                                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                      "-_=+,./:@%") == std::string::npos;
    std::string quoted = "'";
    for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += (out.empty() ? "" : " ") + (plain ? word : quoted + "'");
  }
  return out;
}
}  // namespace

void add_run_details(Report& report, const Json& run) {
  report.section("How to repeat this");
  report.code(shell_text(run.at("command_line")));
  std::vector<std::pair<std::string, std::string>> pairs;
  auto show = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) pairs.emplace_back(name, value);
  };
  const Json& build = run.at("build");
  const Json& machine = run.at("machine");
  show("status", run.get<std::string>("status"));
  show("error", run.get_or<std::string>("error", ""));
  show("started", run.get<std::string>("started"));
  show("ended", run.get_or<std::string>("ended", ""));
  if (const Json* seed = run.find("seed"); seed && seed->is_integer()) show("seed", seed->dump());
  show("strata",
       fmt::format("{} {}", build.get<std::string>("version"), build.get_or<std::string>("git_revision", "")));
  show("build", fmt::format("{}, {}, {}", build.get<std::string>("type"), build.get<std::string>("compiler"),
                            build.get<std::string>("flags")));
  show("processor",
       fmt::format("{} ({} cores usable)", machine.get<std::string>("cpu"), machine.get<int64_t>("logical_cores")));
  show("memory", human_bytes(machine.get<uint64_t>("memory_bytes")));
  show("graphics card", run.get_or<std::string>("gpu", ""));
  show("system", machine.get<std::string>("system"));
  for (const auto& [library, version] : run.at("libraries").members()) show(library, version.as_string());
  report.key_values(pairs);
}

}  // namespace strata::apps
