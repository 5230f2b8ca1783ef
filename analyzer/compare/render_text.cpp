// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/compare/render.h"
#include "analyzer/core/text.h"
#include "analyzer/render/page.h"

namespace kshim::diff {
namespace {

using analysis::Page;
using analysis::Tone;

constexpr std::size_t kGroups = 12;
constexpr std::size_t kRows = 8;
constexpr std::size_t kStayed = 5;
constexpr std::size_t kNotes = 6;

Tone tone_of(Effect effect) {
  return effect == Effect::lost ? Tone::error : effect == Effect::gained ? Tone::good : Tone::dim;
}

class Writer {
 public:
  Writer(const Diff& diff, const analysis::RenderOptions& options)
      : diff_(diff), page_(options), options_(options) {}

  std::string write() {
    const bool lost = diff_.lost();
    page_.titled(lost ? Tone::error : Tone::good, fmt::format("{}:", verdict_of(diff_)),
                 clean(summary_of(diff_)));
    const std::vector<Group> groups = grouped(diff_);
    const std::size_t shown = limit(kGroups, groups.size());
    for (std::size_t i = 0; i < shown; ++i) group(groups[i]);
    more(groups.size(), shown, "and {} more files");
    stayed();
    const std::size_t notes = limit(kNotes, diff_.notes.size());
    for (std::size_t i = 0; i < notes; ++i) {
      page_.blank();
      page_.titled(Tone::strong, "note:", clean(diff_.notes[i]));
    }
    more(diff_.notes.size(), notes, "and {} more notes");
    return std::move(page_).take();
  }

 private:
  std::string clean(const std::string& text) const {
    return options_.unicode ? analysis::harmless(text) : analysis::ascii(text);
  }
  /// "and 1 more" takes as much room as that one.
  std::size_t limit(std::size_t most, std::size_t all) const {
    return options_.verbose || all <= most + 1 ? all : most;
  }
  void more(std::size_t all, std::size_t shown, std::string_view text) {
    if (all > shown)
      page_.line(
          page_.paint(Tone::dim, fmt::format(fmt::runtime(text), all - shown) + " (--verbose shows them)"));
  }
  void row(const Change& change) {
    page_.titled(tone_of(change.effect), fmt::format("  {:<8}", word_of(change)), clean(change.text));
  }
  void group(const Group& group) {
    page_.blank();
    page_.paragraph(group.pair == nullptr ? "Findings" : clean(name_of(*group.pair)), 0, 2, Tone::strong);
    const std::size_t shown = limit(kRows, group.changes.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const Change& change = *group.changes[i];
      row(change);
      if (!options_.verbose) continue;
      for (const std::string& kernel : change.kernels) page_.paragraph(clean(kernel), 13, 2);
    }
    more(group.changes.size(), shown, "  and {} more");
  }
  void stayed() {
    if (diff_.stayed.empty()) return;
    page_.blank();
    page_.line(page_.paint(Tone::strong, "As before"));
    const std::size_t shown = limit(kStayed, diff_.stayed.size());
    for (std::size_t i = 0; i < shown; ++i) page_.paragraph(clean(sentence_of(diff_.stayed[i])), 2, 2);
    more(diff_.stayed.size(), shown, "  and {} more");
  }

  const Diff& diff_;
  Page page_;
  const analysis::RenderOptions& options_;
};

}  // namespace

std::string render_text(const Diff& diff, const analysis::RenderOptions& options) {
  return Writer(diff, options).write();
}

}  // namespace kshim::diff
