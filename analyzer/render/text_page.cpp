// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/text_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "analyzer/core/text.h"
#include "analyzer/render/command_lines.h"
#include "analyzer/render/name_cell.h"

namespace kshim::analysis {
namespace {

constexpr unsigned kNarrowest = 60;
constexpr unsigned kWidest = 100;  // longer lines are hard to read, and issues cut them off
constexpr unsigned kRowIndent = 2;
constexpr unsigned kTextIndent = 2;
constexpr unsigned kCommandIndent = 4;
constexpr std::size_t kScreen = 40;  // lines
constexpr std::size_t kRows = 30;
constexpr std::size_t kNarrowestName = 16;

// ECMA-48 "select graphic rendition" parameters.
std::string_view sgr(Tone tone) {
  switch (tone) {
    case Tone::strong:
      return "1";
    case Tone::dim:
      return "2";
    case Tone::error:
      return "1;31";
    case Tone::warning:
      return "1;33";
    case Tone::good:
      return "32";
    case Tone::plain:
    case Tone::code:
    case Tone::number:
      break;
  }
  return "";
}
constexpr std::string_view kCommandColor = "36";

std::string colored(std::string_view parameters, std::string_view text) {
  return fmt::format("\033[{}m{}\033[0m", parameters, text);
}

std::string plain(const Line& line) {
  std::string out;
  for (const Span& span : line) out += span.text;
  return out;
}

Tone tone_of(const Line& line) { return line.empty() ? Tone::plain : line.front().tone; }

Tone tone_of(std::string_view kind) {
  return kind == "error" ? Tone::error : kind == "warning" ? Tone::warning : Tone::strong;
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t wide = terminal_columns(text);
  return wide < width ? std::string(width - wide, ' ') + text : text;
}

}  // namespace

TextPage::TextPage(const RenderOptions& options)
    : Document(options.unicode ? harmless_cleaner() : Cleaner{ascii, ascii}),
      width_(std::clamp(options.width, kNarrowest, kWidest)),
      table_width_(options.width),
      color_(options.colour),
      unicode_(options.unicode),
      verbose_(options.verbose),
      whole_commands_(options.whole_commands) {}

Limits TextPage::limits() const {
  constexpr std::size_t kAll = 1'000'000'000;
  if (verbose_) return {kAll, kAll, kAll, kAll};
  return {.rows = kRows, .columns = width_ - kLabelWidth, .findings = kAll, .kernels = kAll};
}

bool TextPage::has_room() const { return verbose_ || lines_.size() < kScreen; }

std::string TextPage::paint(Tone tone, std::string_view text) const {
  const std::string_view parameters = sgr(tone);
  return color_ && !parameters.empty() && !text.empty() ? colored(parameters, text) : std::string(text);
}

void TextPage::gap() {
  if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
}

void TextPage::more(const std::string& head, const std::string& command) {
  gap();
  const std::string text = clean(command);
  lines_.push_back(head + " " + (color_ ? colored(kCommandColor, text) : text));
}

// Each line of `filled` painted by itself, without its first `skip` columns, which are blanks or already
// painted.
void TextPage::add_painted(const std::string& filled, std::size_t skip, Tone tone) {
  std::size_t begin = 0;
  for (bool first = true; begin <= filled.size(); first = false) {
    const std::size_t end = std::min(filled.find('\n', begin), filled.size());
    const std::string_view text = std::string_view(filled).substr(begin, end - begin);
    if (first) {
      lines_.back() += paint(tone, text);
    } else {
      lines_.push_back(std::string(skip, ' ') + paint(tone, text.substr(std::min(skip, text.size()))));
    }
    begin = end + 1;
  }
}

void TextPage::add_filled(std::string_view text, std::size_t indent, Tone tone) {
  add_painted(fill(text, width_, indent), indent, tone);
}

void TextPage::put_heading(unsigned /*level*/, const Line& text) {
  gap();
  lines_.push_back(paint(Tone::strong, plain(text)));
}

// `head` painted, then `text`, filled; further lines stand under the first letter of `text`.
void TextPage::put_sentence(Tone tone, const std::string& head, const std::string& text, Tone text_tone) {
  lines_.push_back(paint(tone, head) + ' ');
  add_filled(text, columns(head) + 1, text_tone);
}

void TextPage::put_paragraph(const Line& text, unsigned indent, unsigned hang) {
  // fill() indents further lines only, and counts the indent for the first one too.
  lines_.emplace_back(indent, ' ');
  add_filled(plain(text), indent + hang, text.size() == 1 ? tone_of(text) : Tone::plain);
}

void TextPage::put_list(const std::vector<Line>& items) {
  for (const Line& item : items) put_paragraph({{(folded_ ? "" : "- ") + plain(item)}}, kTextIndent, 2);
}

void TextPage::start_row(std::string_view label, Tone tone) {
  std::string head(kRowIndent, ' ');
  head += label;
  head.resize(std::max<std::size_t>(kLabelWidth, head.size() + 1), ' ');
  lines_.push_back(label.empty() ? head : paint(tone, head));
}

void TextPage::put_facts(const std::vector<Fact>& rows) {
  for (const Fact& fact : rows) {
    start_row(fact.label, fact.tone);
    add_filled(plain(fact.text), kLabelWidth, Tone::plain);
  }
}

// Rows under a label: names of one width, a painted mark, and a clause. Counts are left out.
void TextPage::put_rows(const std::vector<Row>& rows, const std::string& label) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(plain(row[i])));
  }
  for (const Row& row : rows) {
    start_row(&row == rows.data() ? std::string_view(label) : "", Tone::dim);
    std::size_t indent = kLabelWidth;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const Tone tone = tone_of(row[i]);
      if (tone == Tone::number) continue;
      std::string text = plain(row[i]);
      if (tone == Tone::good || tone == Tone::error) {
        if (!unicode_) text = tone == Tone::good ? "yes:" : "no: ";
        indent += columns(text) + 2;
        lines_.back() += ' ' + paint(tone, text) + ' ';
      } else {
        text.append(widths[i] - columns(text) + 1, ' ');
        indent += columns(text);
        lines_.back() += text;
      }
    }
    add_filled(plain(row.back()), indent, Tone::plain);
  }
}

// The first column names the rows and is cut where it must be; the others stand right.
void TextPage::put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                         const std::string& label) {
  if (!label.empty()) return put_rows(rows, label);
  std::vector<std::size_t> widths;
  for (const std::string& name : head) widths.push_back(terminal_columns(name));
  std::size_t name_width = kNarrowestName;
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.size() < 2) continue;
    names.push_back(plain(row[0]));
    name_width = std::max(name_width, terminal_columns(names.back()));
    for (std::size_t i = 1; i < row.size(); ++i)
      widths[i] = std::max(widths[i], terminal_columns(plain(row[i])));
  }
  std::size_t others = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) others += widths[i] + 1;
  const std::size_t room = table_width_ > others ? table_width_ - others : 0;
  gap();
  if (room < kNarrowestName) return put_matrix_list(head, rows);
  name_width = std::min(name_width, room);
  std::string line(name_width, ' ');
  for (std::size_t i = 1; i < head.size(); ++i) line += " " + padded(head[i], widths[i]);
  lines_.push_back(paint(Tone::strong, line));
  names = name_cells(names, name_width);
  std::size_t next = 0;
  for (const Row& row : rows) {
    if (row.size() < 2) {
      lines_.push_back(paint(Tone::dim, plain(row[0])));
      continue;
    }
    line = names[next++];
    line.append(name_width - std::min(name_width, terminal_columns(line)), ' ');
    for (std::size_t i = 1; i < row.size(); ++i)
      line += ' ' + paint(tone_of(row[i]), padded(plain(row[i]), widths[i]));
    lines_.push_back(std::move(line));
  }
}

// Where the columns do not fit, each row has its own lines.
void TextPage::put_matrix_list(const std::vector<std::string>& head, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    lines_.push_back(paint(Tone::strong, plain(row[0])));
    std::string text;
    for (std::size_t i = 1; i < row.size(); ++i) {
      const std::string cell = plain(row[i]);
      if (cell != "." && cell != "|") text += fmt::format("{}{}:{}", text.empty() ? "" : "  ", head[i], cell);
    }
    if (!text.empty()) lines_.push_back("  " + fill(text, table_width_, 2));
  }
}

void TextPage::put_commands(const std::vector<std::string>& commands) {
  for (const std::string& text : commands) command(text);
}

// On its own lines: breaks between words end with a backslash, so that all of it can be pasted.
void TextPage::command(std::string_view text) {
  constexpr unsigned kHang = 4;
  const auto add = [&](std::size_t indent, std::string_view part) {
    lines_.push_back(std::string(indent, ' ') + (color_ ? colored(kCommandColor, part) : std::string(part)));
  };
  if (whole_commands_) return add(kCommandIndent, text);
  for (const CommandLine& part : break_command(text, width_ - kCommandIndent, kHang))
    add(kCommandIndent + (part.continues ? kHang : 0), part.text);
}

void TextPage::put_finding(std::size_t /*number*/, std::string_view kind, const std::string& title,
                           bool /*further*/) {
  gap();
  put_sentence(tone_of(kind), fmt::format("{}:", kind), title, Tone::strong);
}

// With a head the findings are numbered, and those that are no problem left out; without one each has its
// kind.
void TextPage::put_contents(const std::string& head,
                            const std::vector<std::pair<std::string_view, std::string>>& findings) {
  if (!head.empty()) lines_.push_back(paint(Tone::strong, head));
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto& [kind, title] = findings[i];
    if (head.empty()) {
      put_sentence(tone_of(kind), fmt::format("{}:", kind), title, Tone::plain);
    } else if (kind != "note") {
      put_paragraph({{fmt::format("{}. {}", i + 1, title)}}, kTextIndent, 3);
    }
  }
}

void TextPage::put_details(const std::string& summary) {
  put_heading(3, {{summary}});
  folded_ = true;
}

std::string TextPage::take() && {
  while (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
  std::string out;
  for (const std::string& text : lines_) {
    // A line must not end in blanks, nor in blanks before the end of a color.
    std::string_view rest = text;
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    out += no_command(std::string(rest));
    out += '\n';
  }
  return out;
}

}  // namespace kshim::analysis
