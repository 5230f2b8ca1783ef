// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "analyzer/core/text.h"
#include "analyzer/render/command_lines.h"

namespace kshim::analysis {
namespace {

constexpr unsigned kNarrowest = 60;
constexpr unsigned kWidest = 100;  // longer lines are hard to read, and issues cut them off
constexpr unsigned kRowIndent = 2;

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
    case Tone::command:
      return "36";
    case Tone::plain:
      break;
  }
  return "";
}

}  // namespace

Page::Page(const RenderOptions& options)
    : width_(std::clamp(options.width, kNarrowest, kWidest)),
      colour_(options.colour),
      unicode_(options.unicode),
      whole_commands_(options.whole_commands) {}

std::string Page::paint(Tone tone, std::string_view text) const {
  if (!colour_ || tone == Tone::plain || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", sgr(tone), text);
}

std::string_view Page::glyph(std::string_view utf8, std::string_view ascii) const {
  return unicode_ ? utf8 : ascii;
}

void Page::blank() {
  if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
}

void Page::line(std::string text) { lines_.push_back(std::move(text)); }

// Each line of `filled` painted by itself, without its first `skip` columns, which are blanks or already
// painted.
void Page::add_painted(const std::string& filled, std::size_t skip, Tone tone) {
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

void Page::titled(Tone tone, std::string_view head, std::string_view text, Tone text_tone) {
  const std::size_t indent = columns(head) + 1;
  lines_.push_back(paint(tone, head) + ' ');
  add_painted(fill(text, width_, indent), indent, text_tone);
}

void Page::start_row(std::string_view label) {
  std::string head(kRowIndent, ' ');
  head += label;
  head.resize(std::max<std::size_t>(kLabelWidth, head.size() + 1), ' ');
  lines_.push_back(label.empty() ? head : paint(Tone::dim, head));
}

void Page::row(std::string_view label, std::string_view text) {
  start_row(label);
  add_painted(fill(text, width_, kLabelWidth), kLabelWidth, Tone::plain);
}

void Page::cells(std::string_view label, std::string_view name, std::string_view mark, Tone tone,
                 std::string_view text) {
  start_row(label);
  lines_.back() += fmt::format("{}  {} ", name, paint(tone, mark));
  const std::size_t indent = kLabelWidth + columns(name) + columns(mark) + 3;
  add_painted(fill(text, width_, indent), indent, Tone::plain);
}

void Page::paragraph(std::string_view text, unsigned indent, unsigned hang, Tone tone) {
  // fill() indents further lines only, and counts the indent for the first one too.
  std::string filled = fill(text, width_, indent + hang);
  lines_.emplace_back(indent, ' ');
  add_painted(filled, indent + hang, tone);
}

void Page::command(std::string_view text, unsigned indent) {
  constexpr unsigned kHang = 4;
  if (whole_commands_) return lines_.push_back(std::string(indent, ' ') + paint(Tone::command, text));
  for (const CommandLine& part : break_command(text, width_ - indent, kHang)) {
    lines_.push_back(std::string(indent + (part.continues ? kHang : 0), ' ') +
                     paint(Tone::command, part.text));
  }
}

std::string Page::take() && {
  while (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
  std::string out;
  for (const std::string& text : lines_) {
    // A line must not end in blanks, nor in blanks before the end of a colour.
    std::string_view rest = text;
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    out += no_command(std::string(rest));
    out += '\n';
  }
  return out;
}

}  // namespace kshim::analysis
