// SPDX-License-Identifier: Apache-2.0
// What the formats of a diff have in common.
#pragma once
#include <string>
#include <vector>

#include "analyzer/compare/diff.h"
#include "analyzer/render/formats.h"

namespace kshim::diff {

/// As text, Markdown or HTML.
std::string render_page(const Diff& diff, analysis::Format format, const analysis::RenderOptions& options);
/// Schema kshim-diff/1.
std::string render_json(const Diff& diff);

std::string_view to_name(Effect effect);
/// The effect in a word; of a finding "new", "mended", "worse", "better" or "other".
std::string_view word_of(const Change& change);
/// "lost", "better" or "same".
std::string_view verdict_of(const Diff& diff);
/// "B lacks what A had in 1 of 3 files; 1 finding is new"
std::string summary_of(const Diff& diff);
/// What a pair is called: as B has it below what was named, and as A had it where that differs.
std::string name_of(const Pair& pair);
/// The changes of one pair, or of none, in the order of the list.
struct Group {
  const Pair* pair = nullptr;
  std::vector<const Change*> changes;
};
/// Those that lost something first.
std::vector<Group> grouped(const Diff& diff);
/// "Finding" in one sentence: what stays.
std::string sentence_of(const Finding& finding);

}  // namespace kshim::diff
