// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"
#include "analyzer/render/ci_formats.h"
#include "analyzer/render/document.h"

namespace kshim::compare {

inline Json to_json(const SideFinding& from) {
  Json out;
  KSHIM_JSON_FIELDS(cause, severity, object, need, code, text)
  return out;
}
inline Json to_json(const FindingPair& from) { return {{"a", to_json(from.a)}, {"b", to_json(from.b)}}; }

namespace {

std::string place_of(const Object& object) {
  return object.member.empty() ? object.place : object.place + "!" + object.member;
}

std::size_t lost_files(const Diff& diff) {
  std::set<std::size_t> lost;
  for (const Change& change : diff.changes)
    if (change.effect == Effect::lost && change.pair && change.what != "finding") lost.insert(*change.pair);
  return lost.size();
}

std::size_t findings(const Diff& diff, Effect effect) {
  return static_cast<std::size_t>(std::ranges::count_if(diff.changes, [effect](const Change& change) {
    return change.effect == effect && change.what == "finding";
  }));
}

/// The effect in a word; of a finding "new", "fixed", "worse", "better" or "other".
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

/// As B has it below what was named, and as A had it where that differs.
std::string name_of(const Pair& pair) {
  const std::string now = place_of(pair.any());
  if (pair.a == nullptr || pair.b == nullptr) return now;
  const std::string before = place_of(*pair.a);
  return before == now ? now : fmt::format("{} (was {})", now, before);
}

/// The changes of one pair, or of none, in the order of the list.
struct Group {
  const Pair* pair = nullptr;
  std::vector<const Change*> changes;
};

/// Those that lost something first.
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

std::string sentence_of(const SideFinding& finding) {
  return fmt::format("{}: {}", to_name(finding.severity), finding.text);
}

std::string render_github(const Diff& diff) {
  GithubCommands commands;
  for (const Change& change : diff.changes) {
    if (change.effect != Effect::lost) continue;
    const std::string name = change.pair ? name_of(diff.pairs[*change.pair]) + ": " : "";
    commands.add(Severity::error, "kshim diff: lost", name + change.text);
  }
  if (!diff.lost()) commands.add(Severity::info, "kshim diff", summary_of(diff));
  for (const std::string& note : diff.notes) commands.add(Severity::info, "kshim diff", note);
  return commands.text();
}

Json name_or_null(const Object* object) { return object == nullptr ? Json(nullptr) : Json(object->name); }

Json side_json(const Side& from) {
  Json out = {{"path", from.path},
              {"kind", from.kind == SideKind::reports ? "reports" : "scan"},
              {"objects", from.kind == SideKind::scan ? Json(from.objects.size()) : Json(nullptr)},
              {"findings", from.findings.size()}};
  KSHIM_JSON_FIELDS(devices, verdict)
  return out;
}

Json change_json(const Diff& diff, const Change& from) {
  Json out = {{"effect", to_name(from.effect)}, {"what", from.what}, {"object", nullptr}};
  if (from.pair) {
    const Pair& pair = diff.pairs[*from.pair];
    out["object"] = {{"a", name_or_null(pair.a)}, {"b", name_or_null(pair.b)}};
  }
  KSHIM_JSON_FIELDS(arch, before, after, text, kernels)
  return out;
}

Json object_json(const Object* object) {
  if (object == nullptr) return nullptr;
  return {
      {"name", object->name}, {"bytes", object->bytes}, {"images", json_list(object->images, image_json)}};
}

std::string render_json(const Diff& from) {
  Json out = {{"schema", "kshim-diff/1"}, {"verdict", verdict_of(from)}};
  out["a"] = side_json(from.a);
  out["b"] = side_json(from.b);
  out["changes"] = json_list(from.changes, [&](const Change& change) { return change_json(from, change); });
  out["objects"] = json_list(from.pairs, [](const Pair& pair) {
    return Json{{"match", json_of(pair.match)}, {"a", object_json(pair.a)}, {"b", object_json(pair.b)}};
  });
  Json& findings = out["findings"];
  findings["mended"] = json_of(from.fixed);
  findings["broken"] = json_of(from.broken);
  findings["changed"] = json_of(from.other);
  findings["stayed"] = json_of(from.stayed);
  KSHIM_JSON_FIELDS(targets, driver, notes)
  return dumped(out);
}

// Of a terminal's screen, unless all is asked for.
constexpr std::size_t kGroups = 12;
constexpr std::size_t kRows = 8;
constexpr std::size_t kStayed = 5;

Tone tone_of(Effect effect) {
  return effect == Effect::lost ? Tone::error : effect == Effect::gained ? Tone::good : Tone::dim;
}

struct DiffWriter {
  void write() {
    doc_.title(fmt::format("kshim diff: {}", verdict_of(diff_)));
    doc_.say(diff_.lost() ? Tone::error : Tone::good, fmt::format("{}:", verdict_of(diff_)),
             summary_of(diff_));
    if (!doc_.terminal()) doc_.facts({{"A", {code(diff_.a.path)}}, {"B", {code(diff_.b.path)}}});
    const std::vector<Group> groups = grouped(diff_);
    const std::size_t shown = shown_of(groups.size(), kGroups);
    for (std::size_t i = 0; i < shown; ++i) group(groups[i]);
    more(groups.size() - shown, "more files");
    stayed();
    doc_.notes(mapped(diff_.notes, [](const std::string& note) { return Note{note}; }));
  }

  std::size_t shown_of(std::size_t all, std::size_t few) const {
    return render::shown_of(all, doc_.brief() ? few : doc_.limits().rows);
  }
  void more(std::size_t count, std::string_view what) {
    if (count != 0)
      doc_.paragraph({{fmt::format("and {} {}{}", count, what, doc_.brief() ? " (--verbose shows them)" : ""),
                       Tone::dim}});
  }
  void group(const Group& group) {
    doc_.heading(2, group.pair == nullptr ? Line{{"Findings"}} : Line{code(name_of(*group.pair))});
    const std::size_t shown = shown_of(group.changes.size(), kRows);
    std::vector<Fact> rows;
    for (std::size_t i = 0; i < shown; ++i) {
      const Change& change = *group.changes[i];
      rows.push_back({std::string(word_of(change)), {{change.text}}, tone_of(change.effect)});
      if (!doc_.terminal() || doc_.brief()) continue;
      for (const std::string& kernel : change.kernels) rows.push_back({"", {code(kernel)}});
    }
    doc_.facts(std::move(rows));
    more(group.changes.size() - shown, "more");
    if (doc_.terminal()) return;
    for (std::size_t i = 0; i < shown; ++i)
      if (group.changes[i]->kernels.size() > 1) kernels(*group.changes[i]);
  }
  void kernels(const Change& change) {
    doc_.open_details(fmt::format("{} kernels: {}", change.kernels.size(), to_name(change.effect)));
    doc_.list(mapped(change.kernels, [](const std::string& kernel) { return Line{code(kernel)}; }));
    doc_.close_details();
  }
  void stayed() {
    if (diff_.stayed.empty()) return;
    doc_.heading(2, {{"As before"}});
    const std::size_t shown = shown_of(diff_.stayed.size(), kStayed);
    std::vector<Line> items;
    for (std::size_t i = 0; i < shown; ++i) items.push_back({{sentence_of(diff_.stayed[i])}});
    doc_.list(std::move(items));
    more(diff_.stayed.size() - shown, "more");
  }

  const Diff& diff_;
  Document& doc_;
};

std::string render_page(const Diff& diff, Format format, const RenderOptions& options) {
  return write_document(format, "kshim diff", options, {}, [&](Document& document) {
    DiffWriter{diff, document}.write();
  });
}

}  // namespace

std::string_view to_name(Effect effect) {
  return effect == Effect::lost ? "lost" : effect == Effect::gained ? "gained" : "changed";
}

std::string summary_of(const Diff& diff) {
  std::vector<std::string> parts;
  if (const std::size_t files = lost_files(diff); files != 0 && diff.pairs.size() == 1)
    parts.emplace_back("B lacks what A had");
  else if (files != 0)
    parts.push_back(fmt::format("B lacks what A had in {} of {}", files, counted(diff.pairs.size(), "file")));
  const auto add = [&parts](std::size_t count, std::string_view what) {
    if (count != 0)
      parts.push_back(fmt::format("{} {} {}", counted(count, "finding"), count == 1 ? "is" : "are", what));
  };
  add(findings(diff, Effect::lost), "new or worse");
  if (parts.empty()) parts.emplace_back("B lacks nothing that A had");
  add(findings(diff, Effect::gained), "fixed");
  add(diff.stayed.size(), "as before");
  return join(parts, "; ");
}

std::string rendered(const Diff& diff, Format format, const RenderOptions& options) {
  if (format == Format::json) return render_json(diff);
  return format == Format::github ? render_github(diff) : render_page(diff, format, options);
}

}  // namespace kshim::compare
