// SPDX-License-Identifier: Apache-2.0
#include "analyzer/explain/remedies.h"

#include <algorithm>

namespace kshim::explain {
namespace {

constexpr Remedy kRemedies[] = {
#define KSHIM_REMEDY(message, kind, rest, title, command, why, caveat) \
  {#message, analysis::FixKind::kind, Rest::rest, title, command, why, caveat},
#define KSHIM_MESSAGE_TITLE(message, text)
#include "analyzer/explain/remedies.def"
#undef KSHIM_REMEDY
#undef KSHIM_MESSAGE_TITLE
};

struct Title {
  std::string_view message;
  std::string_view text;
};
constexpr Title kTitles[] = {
#define KSHIM_REMEDY(message, kind, rest, title, command, why, caveat)
#define KSHIM_MESSAGE_TITLE(message, text) {#message, text},
#include "analyzer/explain/remedies.def"
#undef KSHIM_REMEDY
#undef KSHIM_MESSAGE_TITLE
};

}  // namespace

std::span<const Remedy> remedies() { return kRemedies; }

std::string_view title_of_message(std::string_view message) {
  const auto* row = std::find_if(std::begin(kTitles), std::end(kTitles),
                                 [&](const Title& title) { return title.message == message; });
  return row == std::end(kTitles) ? std::string_view() : row->text;
}

const Hit* message_behind(const Clues& clues, const Judgement& judgement) {
  if (judgement.hit == nullptr) return nullptr;
  for (const Hit& hit : clues.hits) {
    if (hit.line == judgement.hit->line && !hit.id.empty() && hit.cause == judgement.suspect.cause) return &hit;
  }
  return nullptr;
}

void add_remedies(const Clues& clues, const Judgement& judgement, analysis::Finding& finding) {
  const Hit* hit = message_behind(clues, judgement);
  if (hit == nullptr) return;
  std::vector<analysis::Fix> own;
  bool alone = false;
  for (const Remedy& row : kRemedies) {
    if (row.message != hit->id) continue;
    analysis::Fix fix{row.kind, row.title, {}, row.why, row.caveat};
    if (*row.command != '\0') fix.commands.emplace_back(row.command);
    own.push_back(std::move(fix));
    alone = alone || row.rest == Rest::alone;
  }
  if (own.empty()) return;
  if (alone) {
    finding.fixes.clear();
    finding.dead_ends.clear();
    finding.remarks.clear();
  }
  finding.fixes.insert(finding.fixes.begin(), std::make_move_iterator(own.begin()),
                       std::make_move_iterator(own.end()));
}

}  // namespace kshim::explain
