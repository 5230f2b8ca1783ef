// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/html_page.h"

#include <algorithm>
#include <array>

#include "analyzer/text/escape.h"

namespace kshim::analysis {
namespace {

// A page with 100,000 rows still opens; beyond nobody scrolls.
constexpr ShareLimits kPage = {.rows = 100'000, .columns = 1'000'000};

// A table without a head is a list of facts and breaks its values to fit; one with a head scrolls by itself.
constexpr const char* kSheet = R"(
:root{color-scheme:light dark;--ink:#1c1e21;--paper:#fff;--soft:#f4f5f7;--line:#d5d9de;--dim:#5c6370;--good:#17703a;--bad:#b42318}
@media (prefers-color-scheme:dark){:root{--ink:#e4e6ea;--paper:#17191c;--soft:#22262b;--line:#3a4048;--dim:#a0a8b4;--good:#5fd38d;--bad:#ff8f80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:64rem;padding:1rem;color:var(--ink);background:var(--paper);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.25rem;line-height:1.3;margin-top:2rem;border-top:1px solid var(--line);padding-top:1rem}h3{font-size:1.05rem;margin-bottom:.25rem}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse}th,td{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top;overflow-wrap:break-word}
thead th{background:var(--soft);white-space:nowrap}tbody th{font-weight:600;white-space:nowrap;color:var(--dim)}
td{max-width:40rem}tbody:first-child td{overflow-wrap:anywhere}
thead~tbody td{min-width:3rem}
@media (max-width:40rem){body{padding:.75rem}th,td{padding:.25rem .4rem;font-size:.9rem}
thead~tbody td:not(:first-child){min-width:4.5rem}thead~tbody td:first-child:has(code){min-width:9rem}thead~tbody td:first-child code{overflow-wrap:anywhere}
thead~tbody td:last-child{min-width:7rem}thead~tbody td.number{min-width:3rem}}
td.number{text-align:right;font-variant-numeric:tabular-nums}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{background:var(--soft);border:1px solid var(--line);border-radius:.3rem;padding:.6rem .8rem;overflow-x:auto;white-space:pre-wrap;user-select:all;-webkit-user-select:all}
.good{color:var(--good)}.bad{color:var(--bad)}.dim{color:var(--dim)}
details{margin:.75rem 0}summary{cursor:pointer;color:var(--dim)}
)";

const char* class_of(Style style) {
  switch (style) {
    case Style::good:
      return "good";
    case Style::bad:
      return "bad";
    case Style::dim:
      return "dim";
    case Style::plain:
    case Style::code:
    case Style::strong:
    case Style::number:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

void HtmlWriter::begin(const char* tag, Attributes attributes) {
  out_.append("<").append(tag);
  for (const auto& [name, value] : attributes)
    out_.append(" ").append(name).append("=\"").append(escape_markup(value)).append("\"");
  out_ += '>';
}

void HtmlWriter::open(const char* tag, Attributes attributes) {
  begin(tag, attributes);
  open_.push_back(tag);
}

void HtmlWriter::close() {
  if (open_.empty()) return;
  out_.append("</").append(open_.back()).append(">");
  open_.pop_back();
}

void HtmlWriter::text(std::string_view text) { out_ += escape_markup(text); }

void HtmlWriter::element(const char* tag, std::string_view content, Attributes attributes) {
  open(tag, attributes);
  text(content);
  close();
}

void HtmlWriter::empty(const char* tag, Attributes attributes) { begin(tag, attributes); }

void HtmlWriter::style(const char* sheet) {
  open("style");
  out_ += sheet;
  close();
}

std::string HtmlWriter::take() && {
  while (!open_.empty()) close();
  out_ += '\n';
  return std::move(out_);
}

HtmlPage::HtmlPage(std::string_view title) {
  html_.empty("!DOCTYPE html", {});
  html_.open("html", {{"lang", "en"}});
  html_.open("head");
  html_.empty("meta", {{"charset", "utf-8"}});
  html_.empty(
      "meta",
      {{"http-equiv", "Content-Security-Policy"},
       {"content", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"}});
  html_.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  html_.element("title", title);
  html_.style(kSheet);
  html_.close();
  html_.open("body");
}

ShareLimits HtmlPage::limits() const { return kPage; }

void HtmlPage::line(const Line& text) {
  for (const Span& span : text) {
    if (span.style == Style::code) {
      html_.element("code", span.text);
    } else if (span.style == Style::strong) {
      html_.element("strong", span.text);
    } else if (const char* name = class_of(span.style); name != nullptr) {
      html_.element("span", span.text, {{"class", name}});
    } else {
      html_.text(span.text);
    }
  }
}

void HtmlPage::heading(unsigned level, const Line& text) {
  constexpr std::array kTags = {"h1", "h2", "h3", "h4"};
  html_.open(kTags.at(std::clamp(level, 1U, 4U) - 1));
  line(text);
  html_.close();
}

void HtmlPage::paragraph(const Line& text) {
  html_.open("p");
  line(text);
  html_.close();
}

void HtmlPage::list(const std::vector<Line>& items) {
  if (items.empty()) return;
  html_.open("ul");
  for (const Line& item : items) {
    html_.open("li");
    line(item);
    html_.close();
  }
  html_.close();
}

void HtmlPage::table(const std::vector<std::string>& head, const std::vector<std::vector<Line>>& rows) {
  if (rows.empty()) return;
  html_.open("div", {{"class", "scroll"}});
  html_.open("table");
  if (!head.empty()) {
    html_.open("thead");
    html_.open("tr");
    for (const std::string& name : head) html_.element("th", name, {{"scope", "col"}});
    html_.close();
    html_.close();
  }
  html_.open("tbody");
  for (const auto& row : rows) {
    html_.open("tr");
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == 0 && head.empty()) {
        html_.open("th", {{"scope", "row"}});
      } else if (!row[i].empty() && row[i].front().style == Style::number) {
        html_.open("td", {{"class", "number"}});
      } else {
        html_.open("td");
      }
      line(row[i]);
      html_.close();
    }
    html_.close();
  }
  html_.close();
  html_.close();
  html_.close();
}

void HtmlPage::commands(const std::vector<std::string>& commands) {
  if (commands.empty()) return;
  html_.open("pre");
  html_.open("code");
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (i != 0) html_.text("\n");
    html_.text(commands[i]);
  }
  html_.close();
  html_.close();
}

void HtmlPage::open_details(std::string_view summary) {
  html_.open("details");
  html_.element("summary", summary);
}

void HtmlPage::close_details() { html_.close(); }

}  // namespace kshim::analysis
