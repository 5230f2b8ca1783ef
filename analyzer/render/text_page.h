// SPDX-License-Identifier: Apache-2.0
// A document as text for a terminal or an issue: labels on the left, text beside them, commands that can be
// copied.
#pragma once

#include "analyzer/render/document.h"
#include "analyzer/render/formats.h"

namespace kshim::analysis {

class TextPage final : public Document {
 public:
  explicit TextPage(const RenderOptions& options);

  Limits limits() const override;
  bool terminal() const override { return true; }
  bool brief() const override { return !verbose_; }
  bool has_room() const override;
  void close_details() override { folded_ = false; }
  void gap() override;  ///< never two, never the first
  void more(const std::string& head, const std::string& command) override;

  std::string take() &&;

 private:
  void put_heading(unsigned level, const Line& text) override;
  void put_sentence(Tone tone, const std::string& head, const std::string& text, Tone text_tone) override;
  void put_paragraph(const Line& text, unsigned indent, unsigned hang) override;
  void put_list(const std::vector<Line>& items) override;
  void put_facts(const std::vector<Fact>& rows) override;
  void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                 const std::string& label) override;
  void put_commands(const std::vector<std::string>& commands) override;
  void put_finding(std::size_t number, std::string_view kind, const std::string& title,
                   bool further) override;
  void put_contents(const std::string& head,
                    const std::vector<std::pair<std::string_view, std::string>>& findings) override;
  void put_details(const std::string& summary) override;

  std::string paint(Tone tone, std::string_view text) const;
  void add_painted(const std::string& filled, std::size_t skip, Tone tone);
  void add_filled(std::string_view text, std::size_t indent, Tone tone);
  void start_row(std::string_view label, Tone tone);
  void put_rows(const std::vector<Row>& rows, const std::string& label);
  void put_matrix_list(const std::vector<std::string>& head, const std::vector<Row>& rows);
  void command(std::string_view text);

  std::vector<std::string> lines_;
  unsigned width_;
  std::size_t table_width_;  ///< that of the terminal, which may be less than what a page takes for its text
  bool color_;
  bool unicode_;
  bool verbose_;
  bool whole_commands_;
  bool folded_ = false;
};

/// Columns of a fact's label, its indent included.
constexpr unsigned kLabelWidth = 12;

struct CommandLine {
  std::string text;
  bool continues = false;  ///< the line before it ended with a backslash
};

/// A shell command broken into lines of at most `width` columns where words allow it: behind `&&`, else with
/// a backslash, best before an option. Pasted, the lines are the command again. A line that continues is
/// `hang` columns narrower.
std::vector<CommandLine> break_command(std::string_view command, std::size_t width, std::size_t hang);

// Names of files in a column: cut to its width so that they still tell one from the other.

/// Columns that a terminal takes for a UTF-8 text: two for East Asian wide characters and emoji, none for
/// combining marks.
std::size_t terminal_columns(std::string_view text);

/// Each name in at most `width` columns (16 or more). What is left out is the start, then what follows the
/// part in which names differ: "...cupy/cuda/cufft...so".
std::vector<std::string> name_cells(const std::vector<std::string>& names, std::size_t width);

}  // namespace kshim::analysis
