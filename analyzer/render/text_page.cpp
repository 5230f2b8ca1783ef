// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/document.h"

namespace kshim::render {
using core::columns;
using core::Tone;

namespace {

constexpr unsigned kNarrowest = 60;
constexpr unsigned kWidest = 100;  // longer lines are hard to read, and issues cut them off
constexpr unsigned kRowIndent = 2;
constexpr unsigned kTextIndent = 2;
constexpr unsigned kCommandIndent = 4;
constexpr std::size_t kRows = 30;
constexpr std::size_t kNarrowestName = 16;
/// Columns of a fact's label, its indent included.
constexpr unsigned kLabelWidth = 12;

// ECMA-48 "select graphic rendition" parameters: plain, strong, dim, error, warning, good, code, number.
constexpr std::string_view kParameters[] = {"", "1", "2", "1;31", "1;33", "32", "", ""};
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

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, terminal_columns(text)), ' ') + text;
}

/// For a terminal or an issue: labels on the left, text beside them, commands that can be copied.
class TextPage final : public Document {
 public:
  explicit TextPage(const RenderOptions& options)
      : Document(options.unicode ? sanitizing_cleaner() : Cleaner{core::ascii, core::sanitize}),
        options_(options),
        width_(std::clamp(options.width, kNarrowest, kWidest)) {}

  PageLimits limits() const override {
    constexpr std::size_t kAll = 1'000'000'000;
    if (options_.verbose) return {kAll, kAll, kAll, kAll};
    return {.rows = kRows, .columns = width_ - kLabelWidth, .findings = kAll, .kernels = kAll};
  }

  bool terminal() const override { return true; }
  bool brief() const override { return !options_.verbose; }
  void close_details() override { folded_ = false; }
  /// never two, never the first
  void gap() override {
    if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
  }

  void more(const std::string& head, const std::string& command) override {
    gap();
    const std::string text = clean_command(command);
    lines_.push_back(head + " " + (options_.color ? colored(kCommandColor, text) : text));
  }

  std::string take() override {
    while (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
    std::string out;
    for (const std::string& text : lines_) {
      // A line must not end in blanks, nor in blanks before the end of a color.
      std::string_view rest = text;
      while (rest.ends_with(' ')) rest.remove_suffix(1);
      out += core::no_command(std::string(rest));
      out += '\n';
    }
    return out;
  }

 private:
  void put_heading(unsigned /*level*/, const Line& text) override {
    gap();
    lines_.push_back(paint(Tone::strong, plain(text)));
  }

  // `head` painted, then `text`, filled; further lines stand under the first letter of `text`.
  void put_sentence(Tone tone, const std::string& head, const std::string& text, Tone text_tone) override {
    lines_.push_back(paint(tone, head) + ' ');
    add_filled(text, columns(head) + 1, text_tone);
  }

  void put_paragraph(const Line& text, unsigned indent, unsigned hang) override {
    // fill() indents further lines only, and counts the indent for the first one too.
    lines_.emplace_back(indent, ' ');
    add_filled(plain(text), indent + hang, text.size() == 1 ? tone_of(text) : Tone::plain);
  }

  void put_list(const std::vector<Line>& items) override {
    for (const Line& item : items) put_paragraph({{(folded_ ? "" : "- ") + plain(item)}}, kTextIndent, 2);
  }

  void put_facts(const std::vector<Fact>& rows) override {
    for (const Fact& fact : rows) {
      start_row(fact.label, fact.tone);
      add_filled(plain(fact.text), kLabelWidth, Tone::plain);
    }
  }

  // The first column names the rows and is cut where it must be; the others stand right.
  void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                 const std::string& label) override {
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
    std::size_t others = widths.size() - 1;
    for (std::size_t i = 1; i < widths.size(); ++i) others += widths[i];
    const std::size_t room = options_.width > others ? options_.width - others : 0;
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

  void put_commands(const std::vector<std::string>& commands) override {
    for (const std::string& text : commands) command(text);
  }

  void put_finding(std::size_t /*number*/, std::string_view kind, const std::string& title,
                   bool /*further*/) override {
    gap();
    put_sentence(tone_of(kind), fmt::format("{}:", kind), title, Tone::strong);
  }

  // With a head the findings are numbered, and those that are no problem left out; without one each has its
  // kind.
  void put_contents(const std::string& head,
                    const std::vector<std::pair<std::string_view, std::string>>& findings) override {
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

  void put_details(const std::string& summary) override {
    put_heading(3, {{summary}});
    folded_ = true;
  }

  std::string paint(Tone tone, std::string_view text) const {
    const std::string_view parameters = kParameters[static_cast<std::size_t>(tone)];
    return options_.color && !parameters.empty() && !text.empty() ? colored(parameters, text)
                                                                  : std::string(text);
  }

  // Filled, and each line painted by itself: further lines begin in column `indent`.
  void add_filled(std::string_view text, std::size_t indent, Tone tone) {
    const std::vector<std::string> filled = core::split(core::fill(text, width_, indent), "\n");
    lines_.back() += paint(tone, filled.front());
    for (const std::string& line : std::span(filled).subspan(1))
      lines_.push_back(std::string(indent, ' ') + paint(tone, std::string_view(line).substr(indent)));
  }

  void start_row(std::string_view label, Tone tone) {
    std::string head(kRowIndent, ' ');
    head += label;
    head.resize(std::max<std::size_t>(kLabelWidth, head.size() + 1), ' ');
    lines_.push_back(label.empty() ? head : paint(tone, head));
  }

  // Rows under a label: names of one width, a painted mark, and a clause. Counts are left out.
  void put_rows(const std::vector<Row>& rows, const std::string& label) {
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
          if (!options_.unicode) text = tone == Tone::good ? "yes:" : "no: ";
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

  // Where the columns do not fit, each row has its own lines.
  void put_matrix_list(const std::vector<std::string>& head, const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      lines_.push_back(paint(Tone::strong, plain(row[0])));
      std::string text;
      for (std::size_t i = 1; i < row.size(); ++i) {
        const std::string cell = plain(row[i]);
        if (cell != "." && cell != "|")
          text += fmt::format("{}{}:{}", text.empty() ? "" : "  ", head[i], cell);
      }
      if (!text.empty()) lines_.push_back("  " + core::fill(text, options_.width, 2));
    }
  }

  // On its own lines: breaks between words end with a backslash, so that all of it can be pasted.
  void command(std::string_view text) {
    constexpr unsigned kHang = 4;
    const auto add = [&](std::size_t indent, std::string_view part) {
      lines_.push_back(std::string(indent, ' ') +
                       (options_.color ? colored(kCommandColor, part) : std::string(part)));
    };
    if (options_.whole_commands) return add(kCommandIndent, text);
    for (const CommandLine& part : break_command(text, width_ - kCommandIndent, kHang))
      add(kCommandIndent + (part.continues ? kHang : 0), part.text);
  }

  std::vector<std::string> lines_;
  RenderOptions options_;  ///< width: of tables, which may be less than what a page takes for its text
  unsigned width_;
  bool folded_ = false;
};

// The words of a command, split at blanks outside of quotes.
std::vector<std::string> shell_words(std::string_view command) {
  std::vector<std::string> words;
  char quote = '\0';
  std::size_t begin = 0;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const char c = command[at];
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ' ') {
      if (at > begin) words.emplace_back(command.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  if (begin < command.size()) words.emplace_back(command.substr(begin));
  return words;
}

// A line may end there, and the next word begins a command.
bool ends_command(std::string_view text) {
  return text == "&&" || text.ends_with(" &&") || (text.ends_with(';') && !text.ends_with("\\;"));
}

bool begins_part(std::string_view word) { return word.starts_with('-') || word == "|" || word == "||"; }

constexpr std::size_t kBackslash = 2;  // with the blank before it

struct Breaker {
  // An option and its values, kept together where they fit on one line.
  void part(const std::vector<std::string>& words) {
    const std::string whole = core::join(words, " ");
    if (columns(whole) <= width - hang - kBackslash) return add(whole);
    for (const std::string& word : words) add(word);
  }
  void add(const std::string& text) {
    if (lines.empty() || ends_command(lines.back().text)) {
      lines.push_back({text, false});
      return;
    }
    const std::size_t room = width - (lines.back().continues ? hang : 0);
    const bool fits = columns(lines.back().text) + 1 + columns(text) + kBackslash <= room;
    lines.back().text += fits || text == "&&" ? " " + text : " \\";
    if (!fits && text != "&&") lines.push_back({text, true});
  }

  std::size_t width, hang;
  std::vector<CommandLine> lines = {};
};

constexpr std::string_view kGap = "...";
constexpr std::string_view kSeparators = "/!";
constexpr std::size_t kMaxEndingLength = 6;
// Hostile names could agree in all but one letter, again and again.
constexpr unsigned kRounds = 6;

// UAX #11, the blocks that are wide or full width throughout or nearly so.
constexpr core::CharacterRange kWide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x4DBF},  {0x4E00, 0xA4CF}, {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},  {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
// Combining marks and variation selectors.
constexpr core::CharacterRange kNone[] = {{0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF},
                                          {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The first character of a text: its bytes, and the columns that it takes.
struct Taken {
  std::size_t bytes, columns;
};
Taken taken_by(std::string_view text) {
  const core::Decoded next = core::decode(text);
  return {std::max<std::size_t>(next.length, 1), core::is_within(kNone, next.code)   ? 0U
                                                 : core::is_within(kWide, next.code) ? 2U
                                                                                     : 1U};
}

/// As many whole characters from the end as fit.
std::string_view last_columns(std::string_view text, std::size_t width) {
  std::size_t begin = text.size();
  for (std::size_t used = 0; begin > 0;) {
    std::size_t at = begin - 1;
    while (at > 0 && continues(text[at])) --at;
    used += taken_by(text.substr(at)).columns;
    if (used > width) break;
    begin = at;
  }
  return text.substr(begin);
}

std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size();) {
    const Taken next = taken_by(text.substr(end));
    used += next.columns;
    if (used > width) break;
    end += next.bytes;
  }
  return text.substr(0, end);
}

/// ".so" of a name, without its point; empty where that is long.
std::string_view ending_of(std::string_view name) {
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos || name.size() - point > kMaxEndingLength) return {};
  return name.substr(point + 1);
}

std::string from_end(std::string_view name, std::size_t width) {
  std::string_view kept = last_columns(name, width - kGap.size());
  const std::size_t slash = kept.find('/');
  if (slash != std::string_view::npos && slash < width / 2) kept.remove_prefix(slash);
  return fmt::format("{}{}", kGap, kept);
}

/// `name` up to `end`, of that as much as fits, and its ending.
std::string up_to(std::string_view name, std::size_t end, std::size_t width) {
  const std::string_view ending = ending_of(name);
  const std::size_t room = width - 2 * kGap.size() - ending.size();
  const std::size_t word = name.find_first_of("./!", end);
  const bool whole_word = word != std::string_view::npos && (word <= room || word - end <= room / 2);
  if (whole_word) end = word;
  while (end < name.size() && continues(name[end])) ++end;
  if (terminal_columns(name.substr(0, end)) > room)
    return fmt::format("{}{}{}{}", kGap, last_columns(name.substr(0, end), room), kGap, ending);
  return fmt::format("{}{}{}", whole_word ? name.substr(0, end) : first_columns(name, room), kGap, ending);
}

std::string first_cut(std::string_view name, std::size_t width) {
  const std::string text = from_end(name, width);
  if (text.find_first_of(kSeparators) != std::string::npos) return text;
  // Not even the file's own name fits: its first word says more than "-x86_64-linux-gnu.so".
  const std::size_t slash = name.find_last_of(kSeparators);
  const std::size_t point = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  return point == std::string_view::npos ? text : up_to(name, point, width);
}

std::size_t common_ending(const std::vector<std::string>& names, const std::vector<std::size_t>& group) {
  std::size_t shared = names[group.front()].size();
  for (const std::size_t i : group) {
    const std::string& first = names[group.front()];
    const auto ends = std::mismatch(first.rbegin(), first.rbegin() + static_cast<std::ptrdiff_t>(shared),
                                    names[i].rbegin(), names[i].rend());
    shared = static_cast<std::size_t>(ends.first - first.rbegin());
  }
  return shared;
}

}  // namespace

std::unique_ptr<Document> text_page(const RenderOptions& options) {
  return std::make_unique<TextPage>(options);
}

std::vector<CommandLine> break_command(std::string_view command, std::size_t width, std::size_t hang) {
  if (columns(command) <= width) return {{std::string(command), false}};
  Breaker breaker{width, hang};
  std::vector<std::string> part;
  for (std::string& word : shell_words(command)) {
    if (!part.empty() && (ends_command(part.back()) || word == "&&" || begins_part(word)))
      breaker.part(std::exchange(part, {}));
    part.push_back(std::move(word));
  }
  if (!part.empty()) breaker.part(part);
  return std::move(breaker.lines);
}

std::size_t terminal_columns(std::string_view text) {
  std::size_t out = 0;
  while (!text.empty()) {
    const Taken next = taken_by(text);
    out += next.columns;
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::vector<std::string> name_cells(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string> cells;
  std::vector<std::size_t> open;  // cut, and perhaps as others are
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool fits = terminal_columns(names[i]) <= width;
    cells.push_back(fits ? names[i] : first_cut(names[i], width));
    if (!fits) open.push_back(i);
  }
  for (unsigned round = 0; round < kRounds && !open.empty(); ++round) {
    std::map<std::string, std::vector<std::size_t>> same;
    for (const std::size_t i : open) same[cells[i]].push_back(i);
    open.clear();
    for (const auto& cut : same) {
      const std::vector<std::size_t>& group = cut.second;
      if (std::ranges::all_of(group, [&](std::size_t i) { return names[i] == names[group[0]]; })) continue;
      const std::size_t shared = common_ending(names, group);
      for (const std::size_t i : group) cells[i] = up_to(names[i], names[i].size() - shared, width);
      open.insert(open.end(), group.begin(), group.end());
    }
  }
  return cells;
}

}  // namespace kshim::render
