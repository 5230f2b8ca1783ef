// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/remedies.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/data/knowledge.h"

namespace kshim::explain {
namespace {

constexpr Remedy kRemedies[] = {
#define KSHIM_REMEDY(message, kind, rest, title, command, why, caveat) \
  {#message, analysis::FixKind::kind, Rest::rest, title, command, why, caveat},
#define KSHIM_MESSAGE_TITLE(message, text)
#include "analyzer/advise/remedies.def"
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
#include "analyzer/advise/remedies.def"
#undef KSHIM_REMEDY
#undef KSHIM_MESSAGE_TITLE
};

void put(std::string& text, std::string_view word, std::string_view value) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
    text.replace(at, word.size(), value);
}

// nullopt for a row that is about a GPU of another kind, or asks which one it is where that is known.
std::optional<analysis::Fix> fix_of(const Remedy& row,
                                    const std::optional<image::ComputeCapability>& device) {
  analysis::Fix fix{row.kind, row.title, {}, row.why, row.caveat, row.message};
  if (*row.command != '\0') fix.commands.emplace_back(row.command);
  const bool about_one = fix.title.find("{sm}") != std::string::npos;
  if (about_one && (!device || analysis::first_toolkit_for({*device, image::Suffix::a}) == nullptr))
    return std::nullopt;
  if (!device) return fix;
  const std::string cc(image::to_name(*device).view());
  const std::string sm = fmt::format("{}{}", device->major, device->minor);
  std::vector<std::string*> texts = {&fix.title, &fix.why, &fix.caveat};
  for (std::string& command : fix.commands) texts.push_back(&command);
  for (std::string* text : texts) {
    put(*text, "{sm}", sm);
    put(*text, "{cc}", cc);
  }
  return fix;
}

// Of the row of this message, else of the family that its id begins with.
bool is_for(const Remedy& row, std::string_view message) {
  constexpr std::string_view kFamily = "of_all_";
  if (!row.message.starts_with(kFamily)) return row.message == message;
  const bool has_own = std::any_of(std::begin(kRemedies), std::end(kRemedies),
                                   [&](const Remedy& own) { return own.message == message; });
  return !has_own && message.starts_with(std::string(row.message.substr(kFamily.size())) + '_');
}

bool installs(const analysis::Fix& fix) {
  return fix.kind == analysis::FixKind::reinstall || fix.kind == analysis::FixKind::downgrade;
}

bool asks_for_gpu(const analysis::Fix& fix) {
  return !fix.commands.empty() &&
         fix.commands.front().find("--query-gpu=name,compute_cap") != std::string::npos;
}

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
    if (hit.line == judgement.hit->line && !hit.id.empty() && hit.cause == judgement.suspect.cause)
      return &hit;
  }
  return nullptr;
}

void add_remedies(const Clues& clues, const Judgement& judgement, analysis::Finding& finding) {
  const Hit* hit = message_behind(clues, judgement);
  if (hit == nullptr) return;
  std::vector<analysis::Fix> own;
  Rest rest = Rest::also;
  for (const Remedy& row : kRemedies) {
    if (!is_for(row, hit->id)) continue;
    rest = row.rest;
    if (auto fix = fix_of(row, judgement.facts.device)) own.push_back(std::move(*fix));
  }
  // A row for this very GPU makes the one that asks which it is needless; so does a release that is named.
  const bool named = rest == Rest::releases
                         ? std::any_of(finding.fixes.begin(), finding.fixes.end(), installs)
                         : std::any_of(std::begin(kRemedies), std::end(kRemedies), [&](const Remedy& row) {
                             return is_for(row, hit->id) &&
                                    std::string_view(row.title).find("{sm}") != std::string_view::npos &&
                                    fix_of(row, judgement.facts.device).has_value();
                           });
  if (named) std::erase_if(own, asks_for_gpu);
  if (own.empty() && (rest == Rest::also || rest == Rest::last)) return;
  if (rest == Rest::alone) finding.fixes.clear();
  if (rest == Rest::alone || rest == Rest::releases) {
    finding.dead_ends.clear();
    finding.remarks.clear();
  }
  if (rest == Rest::releases)
    std::erase_if(finding.fixes, [](const analysis::Fix& fix) { return !installs(fix); });
  const auto at =
      rest == Rest::releases ? finding.fixes.end()
      : rest == Rest::last
          ? std::find_if(finding.fixes.begin(), finding.fixes.end(),
                         [](const analysis::Fix& fix) { return fix.kind == analysis::FixKind::fallback; })
          : finding.fixes.begin();
  finding.fixes.insert(at, std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
}

}  // namespace kshim::explain
