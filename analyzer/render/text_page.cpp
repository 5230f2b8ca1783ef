// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/document.h"

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
/// Columns of a fact's label, its indent included.
constexpr unsigned kLabelWidth = 12;

// ECMA-48 "select graphic rendition" parameters.
std::string_view sgr(Tone tone) {
  // plain, strong, dim, error, warning, good, code, number
  constexpr std::string_view kParameters[] = {"", "1", "2", "1;31", "1;33", "32", "", ""};
  return kParameters[static_cast<std::size_t>(tone)];
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

/// For a terminal or an issue: labels on the left, text beside them, commands that can be copied.
class TextPage final : public Document {
 public:
  explicit TextPage(const RenderOptions& options)
      : Document(options.unicode ? sanitizing_cleaner() : Cleaner{ascii, ascii}),
        width_(std::clamp(options.width, kNarrowest, kWidest)),
        table_width_(options.width),
        color_(options.color),
        unicode_(options.unicode),
        verbose_(options.verbose),
        whole_commands_(options.whole_commands) {}

  Limits limits() const override {
    constexpr std::size_t kAll = 1'000'000'000;
    if (verbose_) return {kAll, kAll, kAll, kAll};
    return {.rows = kRows, .columns = width_ - kLabelWidth, .findings = kAll, .kernels = kAll};
  }

  bool terminal() const override { return true; }
  bool brief() const override { return !verbose_; }
  bool has_room() const override { return verbose_ || lines_.size() < kScreen; }
  void close_details() override { folded_ = false; }
  /// never two, never the first
  void gap() override {
    if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
  }

  void more(const std::string& head, const std::string& command) override {
    gap();
    const std::string text = clean(command);
    lines_.push_back(head + " " + (color_ ? colored(kCommandColor, text) : text));
  }

  std::string take() override {
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
    const std::string_view parameters = sgr(tone);
    return color_ && !parameters.empty() && !text.empty() ? colored(parameters, text) : std::string(text);
  }

  // Each line of `filled` painted by itself, without its first `skip` columns, which are blanks or already
  // painted.
  void add_painted(const std::string& filled, std::size_t skip, Tone tone) {
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

  void add_filled(std::string_view text, std::size_t indent, Tone tone) {
    add_painted(fill(text, width_, indent), indent, tone);
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
      if (!text.empty()) lines_.push_back("  " + fill(text, table_width_, 2));
    }
  }

  // On its own lines: breaks between words end with a backslash, so that all of it can be pasted.
  void command(std::string_view text) {
    constexpr unsigned kHang = 4;
    const auto add = [&](std::size_t indent, std::string_view part) {
      lines_.push_back(std::string(indent, ' ') +
                       (color_ ? colored(kCommandColor, part) : std::string(part)));
    };
    if (whole_commands_) return add(kCommandIndent, text);
    for (const CommandLine& part : break_command(text, width_ - kCommandIndent, kHang))
      add(kCommandIndent + (part.continues ? kHang : 0), part.text);
  }

  std::vector<std::string> lines_;
  unsigned width_;
  std::size_t table_width_;  ///< that of the terminal, which may be less than what a page takes for its text
  bool color_;
  bool unicode_;
  bool verbose_;
  bool whole_commands_;
  bool folded_ = false;
};

}  // namespace

std::unique_ptr<Document> text_page(const RenderOptions& options) {
  return std::make_unique<TextPage>(options);
}

namespace {

// The words of a command, split at blanks outside of quotes.
std::vector<std::string_view> shell_words(std::string_view command) {
  std::vector<std::string_view> words;
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
      if (at > begin) words.push_back(command.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  if (begin < command.size()) words.push_back(command.substr(begin));
  return words;
}

// A line may end there, and the next word begins a command.
bool ends_command(std::string_view text) {
  return text == "&&" || text.ends_with(" &&") || (text.ends_with(';') && !text.ends_with("\\;"));
}

bool begins_part(std::string_view word) { return word.starts_with('-') || word == "|" || word == "||"; }

class Breaker {
 public:
  Breaker(std::size_t width, std::size_t hang) : width_(width), hang_(hang) {}

  // An option and its values, kept together where they fit on one line.
  void part(const std::vector<std::string_view>& words) {
    std::size_t whole = words.size() - 1;
    for (const std::string_view word : words) whole += columns(word);
    if (whole <= width_ - hang_ - kBackslash) {
      std::string text;
      for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
      add(text);
      return;
    }
    for (const std::string_view word : words) add(word);
  }
  std::vector<CommandLine> take() && { return std::move(lines_); }

 private:
  static constexpr std::size_t kBackslash = 2;  // with the blank before it

  void add(std::string_view text) {
    if (lines_.empty() || ends_command(lines_.back().text)) {
      lines_.push_back({std::string(text), false});
      return;
    }
    const std::size_t room = width_ - (lines_.back().continues ? hang_ : 0);
    if (text != "&&" && columns(lines_.back().text) + 1 + columns(text) + kBackslash > room) {
      lines_.back().text += " \\";
      lines_.push_back({std::string(text), true});
    } else {
      lines_.back().text.append(" ").append(text);
    }
  }

  std::size_t width_;
  std::size_t hang_;
  std::vector<CommandLine> lines_;
};

}  // namespace

std::vector<CommandLine> break_command(std::string_view command, std::size_t width, std::size_t hang) {
  if (columns(command) <= width) return {{std::string(command), false}};
  Breaker breaker(width, hang);
  std::vector<std::string_view> part;
  bool closed = true;
  for (const std::string_view word : shell_words(command)) {
    const bool joint = word == "&&";
    if (!part.empty() && (closed || joint || begins_part(word))) {
      breaker.part(part);
      part.clear();
    }
    part.push_back(word);
    closed = ends_command(word);
  }
  if (!part.empty()) breaker.part(part);
  return std::move(breaker).take();
}

namespace {

constexpr std::string_view kGap = "...";
constexpr std::string_view kSeparators = "/!";
constexpr std::size_t kMaxEndingLength = 6;
// Hostile names could agree in all but one letter, again and again.
constexpr unsigned kRounds = 6;

struct Range {
  char32_t first;
  char32_t last;
};

// UAX #11, the blocks that are wide or full width throughout or nearly so.
constexpr std::array<Range, 13> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x4DBF},
                                          {0x4E00, 0xA4CF},
                                          {0xA960, 0xA97F},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1F64F},
                                          {0x1F900, 0x1F9FF},
                                          {0x20000, 0x3FFFD}}};
// Combining marks and variation selectors.
constexpr std::array<Range, 6> kNone = {{{0x0300, 0x036F},
                                         {0x1AB0, 0x1AFF},
                                         {0x20D0, 0x20FF},
                                         {0x3099, 0x309A},
                                         {0xFE00, 0xFE0F},
                                         {0xFE20, 0xFE2F}}};

template <std::size_t kSize>
bool within(const std::array<Range, kSize>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](const Range& range) { return range.first <= c && c <= range.last; });
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The bytes of the character at `at`, at least 1.
std::size_t length_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && continues(text[end])) ++end;
  return end - at;
}

std::size_t columns_at(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  if (length == 1 || length > 4) return 1;
  char32_t c = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) c = c << 6 | (byte(i) & 0x3F);
  return within(kNone, c) ? 0 : within(kWide, c) ? 2 : 1;
}

/// As many whole characters from the end as fit.
std::string_view last_columns(std::string_view text, std::size_t width) {
  std::size_t begin = text.size();
  for (std::size_t used = 0; begin > 0;) {
    std::size_t at = begin - 1;
    while (at > 0 && continues(text[at])) --at;
    used += columns_at(text, at, begin - at);
    if (used > width) break;
    begin = at;
  }
  return text.substr(begin);
}

std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size();) {
    const std::size_t length = length_at(text, end);
    used += columns_at(text, end, length);
    if (used > width) break;
    end += length;
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
  return std::string(kGap) + std::string(kept);
}

/// `name` up to `end`, of that as much as fits, and its ending.
std::string up_to(std::string_view name, std::size_t end, std::size_t width) {
  const std::string_view ending = ending_of(name);
  const std::size_t room = width - 2 * kGap.size() - ending.size();
  const std::size_t word = name.find_first_of("./!", end);
  const bool whole_word = word != std::string_view::npos && (word <= room || word - end <= room / 2);
  if (whole_word) end = word;
  while (end < name.size() && continues(name[end])) ++end;
  std::string out;
  if (terminal_columns(name.substr(0, end)) > room) {
    out += kGap;
    out += last_columns(name.substr(0, end), room);
  } else {
    out += whole_word ? name.substr(0, end) : first_columns(name, room);
  }
  out += kGap;
  return out += ending;
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

std::size_t terminal_columns(std::string_view text) {
  std::size_t out = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_at(text, at);
    out += columns_at(text, at, length);
    at += length;
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
      const bool differ =
          std::ranges::any_of(group, [&](std::size_t i) { return names[i] != names[group[0]]; });
      if (!differ) continue;
      const std::size_t shared = common_ending(names, group);
      for (const std::size_t i : group) cells[i] = up_to(names[i], names[i].size() - shared, width);
      open.insert(open.end(), group.begin(), group.end());
    }
  }
  return cells;
}

}  // namespace kshim::analysis
