// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/document.h"

#include <fmt/chrono.h>

#include <ctime>

#include "analyzer/render/share.h"
#include "kshim/version.h"

namespace kshim::render {
using core::sanitize;
using core::Tone;

namespace {

constexpr std::string_view kYes = "\u2713";
constexpr std::string_view kNo = "\u2717";

std::string more_text(std::size_t count) { return fmt::format("and {} more", count); }

template <class Item>
void cut(std::vector<Item>& items, std::size_t most, Item (*more)(std::size_t count)) {
  const std::size_t left = items.size() - shown_of(items.size(), most);
  items.resize(items.size() - left);
  if (left != 0) items.push_back(more(left));
}

}  // namespace

Span mark(bool good) { return {std::string(good ? kYes : kNo), good ? Tone::good : Tone::error}; }

Cleaner sanitizing_cleaner() { return {sanitize, sanitize}; }

void Document::clean_line(Line& line) const {
  for (Span& span : line) {
    if (span.text != kYes && span.text != kNo) span.text = clean(span.text);
    span.hover = clean(span.hover);
  }
}

void Document::title(const std::string& text, std::vector<std::string> about) {
  constexpr std::string_view kHash = KSHIM_GIT_HASH;
  if (terminal()) return;
  heading(1, {{text}});
  about.push_back(fmt::format("kshim {}{}, {:%Y-%m-%d}", KSHIM_VERSION,
                              kHash.empty() ? "" : fmt::format(" ({})", kHash),
                              fmt::gmtime(std::time(nullptr))));
  paragraph({{core::join(about, " \u00b7 "), Tone::dim}});
}

void Document::heading(unsigned level, Line text) {
  clean_line(text);
  put_heading(level, text);
}

void Document::say(Tone tone, const std::string& head, const std::string& text, Tone text_tone,
                   unsigned level) {
  if (level != 0 && !terminal()) return heading(level, {{head + " " + text}});
  put_sentence(tone, clean(head), clean(text), text_tone);
}

void Document::put_sentence(Tone, const std::string& head, const std::string& text, Tone) {
  put_paragraph({strong(head), {" " + text}}, 0, 0);
}

void Document::paragraph(Line text, unsigned indent, unsigned hang) {
  clean_line(text);
  put_paragraph(text, indent, hang);
}

void Document::list(std::vector<Line> items, std::size_t most) {
  cut<Line>(items, std::min(limits().rows, most), [](std::size_t left) { return Line{{more_text(left)}}; });
  for (Line& item : items) clean_line(item);
  put_list(items);
}

void Document::facts(std::vector<Fact> rows) {
  std::erase_if(rows, [](const Fact& fact) {
    return fact.text.empty() || (fact.text.size() == 1 && fact.text.front().text.empty());
  });
  for (Fact& fact : rows) fact.label = clean(fact.label), clean_line(fact.text);
  if (!rows.empty()) put_facts(rows);
}

void Document::put_facts(const std::vector<Fact>& rows) {
  std::vector<Row> table;
  for (const Fact& fact : rows) {
    std::string label = fact.label;
    if (!label.empty() && label.front() >= 'a' && label.front() <= 'z')
      label.front() = static_cast<char>(label.front() - 'a' + 'A');
    table.push_back({{{std::move(label), fact.tone == Tone::dim ? Tone::plain : fact.tone}}, fact.text});
  }
  put_table({}, table, {});
}

void Document::table(std::vector<std::string> head, std::vector<Row> rows, const std::string& label,
                     std::size_t most) {
  if (rows.empty()) return;
  cut<Row>(rows, std::min(limits().rows, most), [](std::size_t left) { return Row{{{more_text(left)}}}; });
  for (std::string& name : head) name = clean(name);
  for (Row& row : rows)
    for (Line& cell : row) clean_line(cell);
  put_table(head, rows, label);
}

void Document::commands(std::vector<std::string> commands) {
  for (std::string& command : commands) command = clean_command(command);
  if (!commands.empty()) put_commands(commands);
}

void Document::open_finding(std::size_t number, std::string_view kind, const std::string& title,
                            bool further) {
  put_finding(number, kind, clean(title), further);
}

void Document::contents(const std::string& head,
                        std::vector<std::pair<std::string_view, std::string>> findings) {
  for (auto& finding : findings) finding.second = clean(finding.second);
  put_contents(head, findings);
}

void Document::open_details(const std::string& summary) { put_details(clean(summary)); }

void Document::notes(const std::vector<Note>& notes) {
  if (notes.empty()) return;
  if (terminal()) {
    const std::size_t shown = shown_of(notes.size(), limits().rows);
    for (std::size_t i = 0; i < shown; ++i) {
      gap();
      say(notes[i].tone, notes[i].head, notes[i].text);
    }
    if (shown < notes.size()) paragraph({{more_text(notes.size() - shown) + " notes"}});
    return;
  }
  heading(2, {{"Notes"}});
  std::vector<Line> items;
  for (const Note& note : notes)
    items.push_back({{note.tone == Tone::strong ? note.text : note.head + " " + note.text}});
  list(std::move(items));
}

std::string write_document(Format format, const std::string& title, const RenderOptions& options,
                           std::vector<std::string> hosts, const std::function<void(Document&)>& fill) {
  const auto written = [&](const std::unique_ptr<Document>& page) {
    fill(*page);
    return page->take();
  };
  if (format == Format::text) return written(text_page(options));
  Cleaner clean = sanitizing_cleaner();
  if (!options.full) {
    for (std::string& host : hosts) host = sanitize(host);
    const auto shortener = std::make_shared<Shortener>(Shortener::for_user(std::move(hosts)));
    clean = {[shortener](std::string_view text) { return shortener->text(sanitize(text)); },
             [shortener](std::string_view text) { return shortener->command(sanitize(text)); }};
  }
  if (format == Format::html) return written(html_page(title, options.verbose, std::move(clean)));
  return written(markdown_page(options.verbose, std::move(clean)));
}

}  // namespace kshim::render
