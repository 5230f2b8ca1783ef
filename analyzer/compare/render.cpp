// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/render.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "analyzer/core/text.h"
#include "analyzer/render/github.h"

namespace kshim::diff {
namespace {

std::string place_of(const Object& object) {
  return object.member.empty() ? object.place : object.place + "!" + object.member;
}

std::size_t lost_files(const Diff& diff) {
  std::vector<bool> lost(diff.pairs.size());
  for (const Change& change : diff.changes) {
    if (change.effect == Effect::lost && change.pair && change.what != "finding") lost[*change.pair] = true;
  }
  return static_cast<std::size_t>(std::count(lost.begin(), lost.end(), true));
}

std::size_t findings(const Diff& diff, Effect effect) {
  return static_cast<std::size_t>(std::count_if(
      diff.changes.begin(), diff.changes.end(),
      [effect](const Change& change) { return change.effect == effect && change.what == "finding"; }));
}

std::string render_github(const Diff& diff) {
  analysis::GithubCommands commands;
  for (const Change& change : diff.changes) {
    if (change.effect != Effect::lost) continue;
    const std::string name = change.pair ? name_of(diff.pairs[*change.pair]) + ": " : "";
    commands.add(analysis::Severity::error, "kshim diff: lost", name + change.text);
  }
  if (!diff.lost()) commands.add(analysis::Severity::info, "kshim diff", summary_of(diff));
  for (const std::string& note : diff.notes) commands.add(analysis::Severity::info, "kshim diff", note);
  return commands.text();
}

}  // namespace

std::string_view to_name(Effect effect) {
  return effect == Effect::lost ? "lost" : effect == Effect::gained ? "gained" : "changed";
}

std::string_view word_of(const Change& change) {
  if (change.what != "finding") return to_name(change.effect);
  if (change.effect == Effect::changed) return "other";
  return change.effect == Effect::lost ? change.before.empty() ? "new" : "worse"
         : change.after.empty()        ? "fixed"
                                       : "better";
}

std::string_view verdict_of(const Diff& diff) {
  return diff.lost() ? "lost" : diff.gained() ? "better" : "same";
}

std::string summary_of(const Diff& diff) {
  std::vector<std::string> parts;
  if (const std::size_t files = lost_files(diff); files != 0 && diff.pairs.size() == 1)
    parts.emplace_back("B lacks what A had");
  else if (files != 0)
    parts.push_back(
        fmt::format("B lacks what A had in {} of {}", files, analysis::counted(diff.pairs.size(), "file")));
  if (const std::size_t worse = findings(diff, Effect::lost); worse != 0)
    parts.push_back(
        fmt::format("{} new or worse", worse == 1 ? "1 finding is" : fmt::format("{} findings are", worse)));
  if (parts.empty()) parts.emplace_back("B lacks nothing that A had");
  if (const std::size_t better = findings(diff, Effect::gained); better != 0)
    parts.push_back(
        fmt::format("{} fixed", better == 1 ? "1 finding is" : fmt::format("{} findings are", better)));
  if (!diff.stayed.empty())
    parts.push_back(fmt::format("{} as before", diff.stayed.size() == 1
                                                    ? "1 finding is"
                                                    : fmt::format("{} findings are", diff.stayed.size())));
  return analysis::join(parts, "; ");
}

std::string name_of(const Pair& pair) {
  const std::string now = place_of(pair.any());
  if (pair.a == nullptr || pair.b == nullptr) return now;
  const std::string before = place_of(*pair.a);
  return before == now ? now : fmt::format("{} (was {})", now, before);
}

std::vector<Group> grouped(const Diff& diff) {
  std::vector<Group> groups;
  std::map<const Pair*, std::size_t> places;
  for (const Change& change : diff.changes) {
    const Pair* pair = change.pair ? &diff.pairs[*change.pair] : nullptr;
    const auto [at, added] = places.try_emplace(pair, groups.size());
    if (added) groups.push_back({pair, {}});
    groups[at->second].changes.push_back(&change);
  }
  return groups;
}

std::string sentence_of(const Finding& finding) {
  return fmt::format("{}: {}", to_name(finding.severity), finding.text);
}

std::string render(const Diff& diff, analysis::Format format, const analysis::RenderOptions& options) {
  if (format == analysis::Format::json) return render_json(diff);
  return format == analysis::Format::github ? render_github(diff) : render_page(diff, format, options);
}

}  // namespace kshim::diff
