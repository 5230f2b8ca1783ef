// SPDX-License-Identifier: Apache-2.0
// GitHub-flavored Markdown, to be pasted into an issue: nothing foreign may become markup, a mention, a link
// to an issue or a picture.
#include "analyzer/render/document.h"

namespace kshim::render {
using core::mapped;
using core::Tone;

namespace {

constexpr PageLimits kIssue = {.rows = 40, .columns = 200, .findings = 40, .kernels = 400};
constexpr std::size_t kIssueBytes = 65'536;  // each character has at least one byte
constexpr std::size_t kNoteBytes = 400;
constexpr PageLimits kEverything = {
    .rows = 1'000'000, .columns = 1'000'000, .findings = 1'000'000, .kernels = 1'000'000};

enum class Where : std::uint8_t { block, cell };

std::size_t longest_run(std::string_view text, char c) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char other : text) {
    run = other == c ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// In a table even code ends at a bar, unless a backslash stands before it; the table takes that away again.
std::string bars_escaped(std::string_view text) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find('|', at)) != std::string::npos; at += 2) out.insert(at, "\\");
  return out;
}

std::string code_span(std::string_view text, Where where) {
  if (text.find_first_not_of(' ') == std::string_view::npos) return {};
  const std::string fence(longest_run(text, '`') + 1, '`');
  // One blank is taken away at each end where there are two and the text is not only blanks.
  const bool pad = text.front() == '`' || text.back() == '`' || (text.front() == ' ' && text.back() == ' ');
  const std::string inside = where == Where::cell ? bars_escaped(text) : std::string(text);
  return fence + (pad ? " " : "") + inside + (pad ? " " : "") + fence;
}

// What GitHub turns into a mention, a link, an issue, an emoji or a formula even where no Markdown is. Code
// it leaves alone.
bool attracts(std::string_view word) {
  if (word.find_first_of("@$") != std::string_view::npos) return true;
  if (core::contains(word, "://") || core::contains(word, "www.")) return true;
  if (std::ranges::count(word, ':') > 1) return true;
  for (std::size_t at = word.find_first_of("#-"); at != std::string_view::npos;
       at = word.find_first_of("#-", at + 1)) {
    const bool number = at + 1 < word.size() && word[at + 1] >= '0' && word[at + 1] <= '9';
    if (number && (word[at] == '#' || word.substr(0, at).ends_with("GH"))) return true;
  }
  return false;
}

std::string escaped_word(std::string_view word, Where where) {
  if (attracts(word)) return code_span(word, where);
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    // CMAKE_CUDA_ARCHITECTURES is no emphasis: between letters the underscore means nothing.
    const bool inside = c == '_' && i > 0 && i + 1 < word.size() && core::is_alnum(word[i - 1]) &&
                        core::is_alnum(word[i + 1]);
    if (!inside && std::string_view("\\`*_[]<>&|~#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// At the beginning of a block "1.", "-" and "=" start lists and underline headings.
std::string escaped_start(std::string text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits < text.size() && core::contains(digits != 0 ? ".)" : "-+=", text[digits]))
    text.insert(digits, "\\");
  return text;
}

std::string escaped(std::string_view text, Where where) {
  std::string out;
  for (const std::string& word : core::split(text, " ")) {
    if (!out.empty() && out.back() != ' ') out += ' ';
    if (!word.empty()) out += escaped_word(word, where);
  }
  return out;
}

std::string marked(const Span& span, Where where) {
  if (span.tone == Tone::code) return code_span(span.text, where);
  const std::string inside = escaped(span.text, where);
  // Where a sentence ends with a blank the next span begins behind it.
  if (span.tone != Tone::strong) return (span.text.starts_with(' ') ? " " : "") + inside;
  return inside.empty() || inside.front() == ' ' || inside.back() == ' ' ? inside : "**" + inside + "**";
}

std::string joined(const Line& line, Where where) {
  std::string out;
  for (const Span& span : line) {
    const std::string next = marked(span, where);
    // Two code spans that touch would be one.
    if (!out.empty() && out.back() == '`' && next.starts_with('`')) out += ' ';
    out += next;
  }
  const std::size_t begin = std::min(out.find_first_not_of(' '), out.size());
  return out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += cell.empty() ? " |" : " " + cell + " |";
  return out;
}

class MarkdownPage final : public Document {
 public:
  explicit MarkdownPage(bool unlimited, Cleaner clean) : Document(std::move(clean)), unlimited_(unlimited) {}

  PageLimits limits() const override { return unlimited_ ? kEverything : kIssue; }
  void close_details() override {
    block("</details>");
    folded_ = false;
  }

  /// Unless unlimited, what GitHub takes of an issue or a comment: what is folded goes first, the last before
  /// the others, then the end; a note says so.
  std::string take() override {
    shorten();
    std::string out;
    for (const Block& block : blocks_) out += (out.empty() ? "" : "\n") + block.text;
    return out;
  }

 private:
  struct Block {
    std::string text;
    std::size_t details = 0;  ///< number of the folded part that it belongs to, from 1
  };
  void put_heading(unsigned level, const Line& text) override {
    block(std::string(level, '#') + ' ' + joined(text, Where::block));
  }

  void put_paragraph(const Line& text, unsigned /*indent*/, unsigned /*hang*/) override {
    block(escaped_start(joined(text, Where::block)));
  }

  void put_list(const std::vector<Line>& items) override {
    block(core::join(
        mapped(items, [](const Line& item) { return "- " + escaped_start(joined(item, Where::block)); }),
        "\n"));
  }

  void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                 const std::string& /*label*/) override {
    const std::size_t width = head.empty() ? rows.front().size() : head.size();
    auto names = mapped(head, [](const std::string& name) { return escaped(name, Where::cell); });
    names.resize(width);
    std::vector<std::string> rule(width, "---");
    for (std::size_t i = 0; i < std::min(width, rows.front().size()); ++i)
      if (const Line& cell = rows.front()[i]; !cell.empty() && cell.front().tone == Tone::number)
        rule[i] = "---:";
    std::string out = table_row(names) + '\n' + table_row(rule);
    for (const auto& row : rows) {
      auto cells = mapped(row, [](const Line& cell) { return joined(cell, Where::cell); });
      cells.resize(width);
      out += '\n' + table_row(cells);
    }
    block(out);
  }

  void put_commands(const std::vector<std::string>& commands) override {
    std::size_t run = 2;
    for (const std::string& command : commands) run = std::max(run, longest_run(command, '`'));
    const std::string fence(run + 1, '`');
    block(fence + "sh\n" + core::join(commands, "\n") + '\n' + fence);
  }

  void put_finding(std::size_t /*number*/, std::string_view kind, const std::string& title,
                   bool /*further*/) override {
    put_heading(2, {{fmt::format("{}: {}", kind, title)}});
  }

  // Behind the empty line GitHub reads Markdown again. The summary is ours, and HTML.
  void put_details(const std::string& summary) override {
    folded_ = true;
    ++details_;
    block("<details>\n<summary>" + core::escape_markup(summary) + "</summary>");
  }

  void block(std::string_view text) {
    if (!text.empty())
      blocks_.push_back({core::join(mapped(core::split(text, "\n"), core::no_command), "\n") + '\n',
                         folded_ ? details_ : 0});
  }

  void shorten() {
    const std::size_t before = size();
    if (unlimited_ || before <= kIssueBytes) return;
    constexpr std::size_t kRoom = kIssueBytes - kNoteBytes;
    std::size_t bytes = before;
    for (std::size_t part = details_; part != 0 && bytes > kRoom; --part) {
      for (const Block& block : blocks_) bytes -= block.details == part ? block.text.size() + 1 : 0;
      std::erase_if(blocks_, [part](const Block& block) { return block.details == part; });
    }
    while (!blocks_.empty() && bytes > kRoom) {
      bytes -= blocks_.back().text.size() + 1;
      blocks_.pop_back();
    }
    // A heading says nothing without what follows.
    while (!blocks_.empty() && blocks_.back().text.starts_with('#') && blocks_.size() > 1) blocks_.pop_back();
    paragraph({strong("Shortened:"),
               {" GitHub takes 65,536 characters, and all of this would be more. Whole: "},
               {"--verbose", Tone::code},
               {", or "},
               {"--format html", Tone::code},
               {"."}});
  }

  std::size_t size() const {
    std::size_t size = blocks_.size();
    for (const Block& block : blocks_) size += block.text.size();
    return size;
  }

  bool unlimited_;
  bool folded_ = false;
  std::size_t details_ = 0;  ///< folded parts so far
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<Document> markdown_page(bool unlimited, Cleaner clean) {
  return std::make_unique<MarkdownPage>(unlimited, std::move(clean));
}

}  // namespace kshim::render
