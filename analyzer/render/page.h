// SPDX-License-Identifier: Apache-2.0
// A page of text for a terminal or an issue: labels on the left, text beside them, commands that can be
// copied.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

enum class Tone : std::uint8_t { plain, strong, dim, error, warning, good, command };

class Page {
 public:
  explicit Page(const RenderOptions& options);

  unsigned width() const noexcept { return width_; }
  std::string paint(Tone tone, std::string_view text) const;
  /// `utf8` where it may be written, else `ascii`.
  std::string_view glyph(std::string_view utf8, std::string_view ascii) const;

  void blank();  ///< an empty line, never two, never the first
  void line(std::string text);
  /// `head` painted, then `text`, filled; further lines stand under the first letter of `text`.
  void titled(Tone tone, std::string_view head, std::string_view text, Tone text_tone = Tone::plain);
  /// A label in a column of its own, and the text beside it.
  void row(std::string_view label, std::string_view text);
  /// A row of a table under such a label: a name of fixed width, a painted mark, and a clause.
  void cells(std::string_view label, std::string_view name, std::string_view mark, Tone tone,
             std::string_view text);
  /// Text filled at an indent; further lines hang by `hang` more.
  void paragraph(std::string_view text, unsigned indent, unsigned hang = 0, Tone tone = Tone::plain);
  /// A shell command on its own lines: breaks between words end with a backslash, so that all of it can be
  /// pasted.
  void command(std::string_view text, unsigned indent);

  std::size_t lines() const noexcept { return lines_.size(); }
  std::string take() &&;

 private:
  void start_row(std::string_view label);
  void add_painted(const std::string& filled, std::size_t skip, Tone tone);
  std::vector<std::string> lines_;
  unsigned width_;
  bool colour_;
  bool unicode_;
  bool whole_commands_;
};

/// Columns of Page::row's label, its indent included.
constexpr unsigned kLabelWidth = 12;

}  // namespace kshim::analysis
