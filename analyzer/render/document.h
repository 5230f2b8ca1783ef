// SPDX-License-Identifier: Apache-2.0
// What is said of an analysis, a scan, a diff or a machine: headings, facts, tables, commands. Text for a
// terminal, Markdown and HTML are written behind it. Every string that is given to it may be foreign: it is
// made harmless here, and shortened where the page is made to be shared, before a writer sees it.
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/render/formats.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::render {

struct Span {
  std::string text;
  core::Tone tone = core::Tone::plain;
  std::string hover = {};   ///< more about it, for pages that can; said elsewhere on the page as well
  std::size_t finding = 0;  ///< the number of the finding that says it, from 1; 0 for none
};
using Line = std::vector<Span>;
using Row = std::vector<Line>;  ///< of a table

inline Span code(std::string text) { return {std::move(text), core::Tone::code}; }
inline Span strong(std::string text) { return {std::move(text), core::Tone::strong}; }
/// A check mark or a cross.
Span mark(bool good);

/// A label and what is known of it. An empty label: the one above goes on.
struct Fact {
  std::string label;
  Line text;
  core::Tone tone = core::Tone::dim;  ///< of the label
};

struct Note {
  std::string text;
  std::string head = "note:";
  core::Tone tone = core::Tone::strong;
};

/// How much of long lists a page shows.
struct PageLimits {
  std::size_t rows = 0;      ///< of any table or list; the last one says how many more there are
  std::size_t columns = 0;   ///< of any name
  std::size_t findings = 0;  ///< with all there is to them
  std::size_t kernels = 0;   ///< of all tables of kernels together
};

/// Of so many, how many are shown: "and 1 more" takes as much room as that one.
constexpr std::size_t shown_of(std::size_t all, std::size_t most) { return all <= most + 1 ? all : most; }

/// What becomes of each string. Commands have their own way, as a shell must still read them.
struct Cleaner {
  std::function<std::string(std::string_view)> text;
  std::function<std::string(std::string_view)> command;
};
Cleaner sanitizing_cleaner();

class Document {
 public:
  explicit Document(Cleaner clean) : clean_(std::move(clean)) {}
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  virtual ~Document() = default;

  /// The page; nothing is added to it any more.
  virtual std::string take() = 0;
  virtual PageLimits limits() const = 0;
  /// A screen of text: nothing on it is folded, and what the person knows is left out.
  virtual bool terminal() const { return false; }
  /// A screen, and no more than a screen.
  virtual bool brief() const { return false; }
  /// Whether Span::hover and Span::finding come to something.
  virtual bool has_links() const { return false; }

  /// What the page is called, and in one line what it is about, when and by which kshim it was made. A
  /// terminal's has no name.
  void title(const std::string& text, std::vector<std::string> about = {});
  void heading(unsigned level, Line text);
  /// "ok: nothing is missing". A `level` other than 0: a heading of that level, where the page has headings.
  void say(core::Tone tone, const std::string& head, const std::string& text,
           core::Tone text_tone = core::Tone::plain, unsigned level = 0);
  /// `indent`: of a terminal; further lines hang by `hang` more.
  void paragraph(Line text, unsigned indent = 0, unsigned hang = 0);
  /// Of either, at most `most`, and no more than limits() says.
  void list(std::vector<Line> items, std::size_t most = SIZE_MAX);
  void facts(std::vector<Fact> rows);
  /// `label`: on a terminal the rows are facts with that label, without the head.
  void table(std::vector<std::string> head, std::vector<Row> rows, const std::string& label = {},
             std::size_t most = SIZE_MAX);
  void commands(std::vector<std::string> commands);
  /// A finding with its number, from 1. `kind`: error, warning, note. `further`: of the file of the one
  /// before, which is still open.
  void open_finding(std::size_t number, std::string_view kind, const std::string& title,
                    bool further = false);
  /// Kinds and titles of the findings that follow, from number 1 on.
  void contents(const std::string& head, std::vector<std::pair<std::string_view, std::string>> findings);
  /// What is folded away until it is asked for. Not nested.
  void open_details(const std::string& summary);
  void notes(const std::vector<Note>& notes);

  virtual void close_finding() {}
  virtual void close_details() {}
  /// An empty line, where the page does not separate its parts by itself.
  virtual void gap() {}
  /// The command that shows what was left out, for a page that leaves out.
  virtual void more(const std::string& /*head*/, const std::string& /*command*/) {}

 protected:
  std::string clean(std::string_view text) const { return clean_.text(text); }
  std::string clean_command(std::string_view text) const { return clean_.command(text); }

  // All text is clean here.
  virtual void put_heading(unsigned level, const Line& text) = 0;
  virtual void put_sentence(core::Tone tone, const std::string& head, const std::string& text,
                            core::Tone text_tone);
  virtual void put_paragraph(const Line& text, unsigned indent, unsigned hang) = 0;
  virtual void put_list(const std::vector<Line>& items) = 0;
  virtual void put_facts(const std::vector<Fact>& rows);
  virtual void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                         const std::string& label) = 0;
  virtual void put_commands(const std::vector<std::string>& commands) = 0;
  virtual void put_finding(std::size_t number, std::string_view kind, const std::string& title,
                           bool further) = 0;
  virtual void put_contents(const std::string& /*head*/,
                            const std::vector<std::pair<std::string_view, std::string>>& /*findings*/) {}
  virtual void put_details(const std::string& summary) = 0;

 private:
  void clean_line(Line& line) const;
  Cleaner clean_;
};

std::unique_ptr<Document> text_page(const RenderOptions& options);
/// `unlimited`: with all there is, else what GitHub takes of an issue or a comment.
std::unique_ptr<Document> markdown_page(bool unlimited, Cleaner clean = sanitizing_cleaner());
std::unique_ptr<Document> html_page(std::string_view title, bool unlimited, Cleaner clean);
/// The document that `fill` makes as text, Markdown or HTML. What is made to be shared shortens home folders,
/// UUIDs and the names of these hosts, unless RenderOptions::full.
std::string write_document(Format format, const std::string& title, const RenderOptions& options,
                           std::vector<std::string> hosts, const std::function<void(Document&)>& fill);

struct CommandLine {
  std::string text;
  bool continues = false;  ///< the line before it ended with a backslash
};

/// A shell command broken into lines of at most `width` columns where words allow it: behind `&&`, else with
/// a backslash, best before an option. Pasted, the lines are the command again. A line that continues is
/// `hang` columns narrower.
std::vector<CommandLine> break_command(std::string_view command, std::size_t width, std::size_t hang);

/// Columns that a terminal takes for a UTF-8 text: two for East Asian wide characters and emoji, none for
/// combining marks.
std::size_t terminal_columns(std::string_view text);

/// Each name of a file in at most `width` columns (16 or more), cut so that they still tell one from the
/// other. What is left out is the start, then what follows the part in which names differ:
/// "...cupy/cuda/cufft...so".
std::vector<std::string> name_cells(const std::vector<std::string>& names, std::size_t width);

}  // namespace kshim::render
