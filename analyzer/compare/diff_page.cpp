// SPDX-License-Identifier: Apache-2.0
// The diff for people: what is lost first, file by file.
#include <fmt/core.h>

#include "analyzer/compare/render.h"
#include "analyzer/render/document.h"

namespace kshim::diff {
namespace {

using analysis::Document;
using analysis::Tone;

// Of a terminal's screen, unless all is asked for.
constexpr std::size_t kGroups = 12;
constexpr std::size_t kRows = 8;
constexpr std::size_t kStayed = 5;

Tone tone_of(Effect effect) {
  return effect == Effect::lost ? Tone::error : effect == Effect::gained ? Tone::good : Tone::dim;
}

class DiffWriter {
 public:
  DiffWriter(const Diff& diff, Document& document) : diff_(diff), doc_(document) {}

  void write() {
    doc_.title(fmt::format("kshim diff: {}", verdict_of(diff_)));
    doc_.say(diff_.lost() ? Tone::error : Tone::good, fmt::format("{}:", verdict_of(diff_)),
             summary_of(diff_));
    if (!doc_.terminal())
      doc_.facts({{"A", {analysis::code(diff_.a.path)}}, {"B", {analysis::code(diff_.b.path)}}});
    const std::vector<Group> groups = grouped(diff_);
    const std::size_t shown = shown_of(groups.size(), kGroups);
    for (std::size_t i = 0; i < shown; ++i) group(groups[i]);
    more(groups.size() - shown, "more files");
    stayed();
    std::vector<analysis::Note> notes;
    for (const std::string& note : diff_.notes) notes.push_back({note});
    doc_.notes(notes);
  }

 private:
  std::size_t shown_of(std::size_t all, std::size_t few) const {
    return analysis::shown_of(all, doc_.brief() ? few : doc_.limits().rows);
  }
  void more(std::size_t count, std::string_view what) {
    if (count != 0)
      doc_.paragraph({{fmt::format("and {} {}{}", count, what, doc_.brief() ? " (--verbose shows them)" : ""),
                       Tone::dim}});
  }
  void group(const Group& group) {
    doc_.heading(2, group.pair == nullptr ? analysis::Line{{"Findings"}}
                                          : analysis::Line{analysis::code(name_of(*group.pair))});
    const std::size_t shown = shown_of(group.changes.size(), kRows);
    std::vector<analysis::Fact> rows;
    for (std::size_t i = 0; i < shown; ++i) {
      const Change& change = *group.changes[i];
      rows.push_back({std::string(word_of(change)), {{change.text}}, tone_of(change.effect)});
      if (!doc_.terminal() || doc_.brief()) continue;
      for (const std::string& kernel : change.kernels) rows.push_back({"", {analysis::code(kernel)}});
    }
    doc_.facts(std::move(rows));
    more(group.changes.size() - shown, "more");
    if (doc_.terminal()) return;
    for (std::size_t i = 0; i < shown; ++i)
      if (group.changes[i]->kernels.size() > 1) kernels(*group.changes[i]);
  }
  void kernels(const Change& change) {
    doc_.open_details(fmt::format("{} kernels: {}", change.kernels.size(), to_name(change.effect)));
    std::vector<analysis::Line> items;
    for (const std::string& kernel : change.kernels) items.push_back({analysis::code(kernel)});
    doc_.list(std::move(items));
    doc_.close_details();
  }
  void stayed() {
    if (diff_.stayed.empty()) return;
    doc_.heading(2, {{"As before"}});
    const std::size_t shown = shown_of(diff_.stayed.size(), kStayed);
    std::vector<analysis::Line> items;
    for (std::size_t i = 0; i < shown; ++i) items.push_back({{sentence_of(diff_.stayed[i])}});
    doc_.list(std::move(items));
    more(diff_.stayed.size() - shown, "more");
  }

  const Diff& diff_;
  Document& doc_;
};

}  // namespace

std::string render_page(const Diff& diff, analysis::Format format, const analysis::RenderOptions& options) {
  return analysis::write_document(format, "kshim diff", options, {},
                                  [&](Document& document) { DiffWriter(diff, document).write(); });
}

}  // namespace kshim::diff
