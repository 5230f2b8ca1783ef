// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"
#include "analyzer/render/ci_formats.h"
#include "analyzer/render/document.h"

namespace kshim::compare {
using core::Tone;
using render::code;
using render::Json;
using render::json_of;

namespace {

constexpr std::size_t index(Effect effect) { return static_cast<std::size_t>(effect); }
constexpr std::string_view to_name(Effect effect) {
  return std::array{"lost", "gained", "changed", "same"}[index(effect)];
}

/// The effect in a word; of a finding "new", "fixed", "worse", "better" or "other".
std::string_view word_of(const Change& change) {
  if (change.what != "finding" || change.effect == Effect::same) return to_name(change.effect);
  if (change.effect == Effect::changed) return "other";
  if (change.effect == Effect::lost) return change.before.empty() ? "new" : "worse";
  return change.after.empty() ? "fixed" : "better";
}

std::string_view verdict_of(const Diff& diff) {
  return diff.has(Effect::lost) ? "lost" : diff.has(Effect::gained) ? "better" : "same";
}

/// As B has it below what was named, and as A had it where that differs.
std::string name_of(const Pair& pair) {
  const auto place = [](const Object& object) {
    return object.member.empty() ? object.place : object.place + "!" + object.member;
  };
  const std::string now = place(pair.any());
  if (pair.a == nullptr || place(*pair.a) == now) return now;
  return fmt::format("{} (was {})", now, place(*pair.a));
}

std::string render_github(const Diff& diff) {
  render::GithubCommands commands;
  for (const Change& change : diff.changes) {
    if (change.effect != Effect::lost) continue;
    const std::string name = change.pair ? name_of(diff.pairs[*change.pair]) + ": " : "";
    commands.add(core::Severity::error, "kshim diff: lost", name + change.text);
  }
  if (!diff.has(Effect::lost)) commands.add(core::Severity::info, "kshim diff", summary_of(diff));
  for (const std::string& note : diff.notes) commands.add(core::Severity::info, "kshim diff", note);
  return commands.text();
}

Json side_json(const Side& from) {
  Json out = {{"path", from.path},
              {"kind", from.reports ? "reports" : "scan"},
              {"objects", from.reports ? Json(nullptr) : Json(from.objects.size())},
              {"findings", from.findings.size()}};
  KSHIM_JSON_FIELDS(devices, verdict)
  return out;
}

Json name_or_null(const Object* object) { return object == nullptr ? Json(nullptr) : Json(object->name); }

Json change_json(const Diff& diff, const Change& from) {
  Json out = {{"effect", to_name(from.effect)}, {"what", from.what}, {"object", nullptr}};
  if (from.pair) {
    const Pair& pair = diff.pairs[*from.pair];
    out["object"] = {{"a", name_or_null(pair.a)}, {"b", name_or_null(pair.b)}};
  }
  KSHIM_JSON_FIELDS(arch, before, after, text, kernels)
  return out;
}

std::string render_json(const Diff& diff) {
  Json out = {{"schema", "kshim-diff/2"}, {"verdict", verdict_of(diff)}};
  out["a"] = side_json(diff.a);
  out["b"] = side_json(diff.b);
  out["changes"] =
      render::json_list(diff.changes, [&](const Change& change) { return change_json(diff, change); });
  out["objects"] = render::json_list(diff.pairs, [](const Pair& pair) {
    return Json{{"match", json_of(pair.match)}, {"a", name_or_null(pair.a)}, {"b", name_or_null(pair.b)}};
  });
  const DiffRequest& from = diff.request;
  KSHIM_JSON_FIELDS(targets, driver)
  out["notes"] = diff.notes;
  return render::dumped(out);
}

// Of a terminal's screen, unless all is asked for.
constexpr std::size_t kObjects = 12;
constexpr std::size_t kRows = 8;

void write_page(const Diff& diff, render::Document& page) {
  const std::string verdict(verdict_of(diff));
  page.title("kshim diff: " + verdict);
  page.say(verdict == "lost" ? Tone::error : Tone::good, verdict + ":", summary_of(diff));
  if (!page.terminal()) page.facts({{"A", {code(diff.a.path)}}, {"B", {code(diff.b.path)}}});
  const auto shown = [&page](std::size_t all, std::size_t few) {
    return render::shown_of(all, page.brief() ? few : page.limits().rows);
  };
  std::map<std::optional<std::size_t>, std::vector<render::Fact>> objects;  // and what belongs to none
  std::vector<std::optional<std::size_t>> order;                            // those that lost something first
  for (const Change& change : diff.changes) {
    if (!objects.contains(change.pair)) order.push_back(change.pair);
    const Tone tone = std::array{Tone::error, Tone::good, Tone::dim, Tone::dim}[index(change.effect)];
    objects[change.pair].push_back({std::string(word_of(change)), {{change.text}}, tone});
    if (!page.brief() && change.kernels.size() > 1)
      for (const std::string& kernel : change.kernels) objects[change.pair].push_back({"", {code(kernel)}});
  }
  const std::size_t few = shown(order.size(), kObjects);
  for (const auto& pair : std::span(order).first(few)) {
    page.heading(2, pair ? render::Line{code(name_of(diff.pairs[*pair]))} : render::Line{{"Findings"}});
    std::vector<render::Fact>& rows = objects[pair];
    const std::size_t left = rows.size() - shown(rows.size(), kRows);
    rows.resize(rows.size() - left);
    if (left != 0) rows.push_back({"", {{fmt::format("and {} more", left)}}});
    page.facts(std::move(rows));
  }
  if (few < order.size())
    page.paragraph({{fmt::format("and {} more files{}", order.size() - few,
                                 page.brief() ? " (--verbose shows them)" : ""),
                     Tone::dim}});
  page.notes(core::mapped(diff.notes, [](const std::string& note) { return render::Note{note}; }));
}

}  // namespace

std::string summary_of(const Diff& diff) {
  std::set<std::size_t> files;
  std::array<std::size_t, 4> findings{};  // by effect
  for (const Change& change : diff.changes) {
    if (change.what == "finding")
      ++findings[index(change.effect)];
    else if (change.effect == Effect::lost)
      files.insert(*change.pair);
  }
  std::vector<std::string> parts;
  if (!files.empty())
    parts.push_back(diff.pairs.size() == 1 ? "B lacks what A had"
                                           : fmt::format("B lacks what A had in {} of {} files", files.size(),
                                                         diff.pairs.size()));
  for (const auto& [effect, what] :
       {std::pair(Effect::lost, "new or worse"), std::pair(Effect::gained, "fixed"),
        std::pair(Effect::same, "as before")}) {
    if (const std::size_t count = findings[index(effect)]; count != 0)
      parts.push_back(
          fmt::format("{} {} {}", core::counted(count, "finding"), count == 1 ? "is" : "are", what));
    if (parts.empty()) parts.emplace_back("B lacks nothing that A had");
  }
  return core::join(parts, "; ");
}

std::string rendered(const Diff& diff, render::Format format, const render::RenderOptions& options) {
  if (format == render::Format::json) return render_json(diff);
  if (format == render::Format::github) return render_github(diff);
  return write_document(format, "kshim diff", options, {},
                        [&](render::Document& page) { write_page(diff, page); });
}

}  // namespace kshim::compare
