// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "analyzer/compare/match.h"
#include "analyzer/core/text.h"

namespace kshim::diff {
namespace {

constexpr std::size_t kNamed = 3;
constexpr std::size_t kNotes = 10;
constexpr std::size_t kLast = static_cast<std::size_t>(-1);  // what belongs to no object comes last

std::string named(const std::vector<std::string>& kernels) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kernels.size(), kNamed); ++i)
    names.push_back(analysis::shorten(kernels[i], 60));
  std::string out = analysis::join(names, ", ");
  if (kernels.size() > kNamed) out += fmt::format(" and {} more", kernels.size() - kNamed);
  return out;
}

std::set<std::string> archs_of(const Object& object) {
  std::set<std::string> out;
  for (const analysis::ImageCount& row : object.images)
    out.emplace(image::to_name(row.candidate.kind, row.candidate.arch).view());
  return out;
}

class Kernels {
 public:
  Kernels(std::size_t number, std::vector<Change>& changes) : number_(number), changes_(changes) {}

  void compare(const Object& a, const Object& b) {
    std::vector<std::string> gone;
    std::vector<std::string> come;
    std::map<std::string, std::vector<std::string>> lacking;  // by architectures that the file still has
    const std::set<std::string> left = archs_of(b);
    for (const auto& [name, archs] : *a.kernels) {
      const auto now = b.kernels->find(name);
      if (now == b.kernels->end()) {
        gone.push_back(name);
        continue;
      }
      for (const std::string& arch : archs) {
        const bool has = std::find(now->second.begin(), now->second.end(), arch) != now->second.end();
        if (!has && left.contains(arch)) lacking[arch].push_back(name);
      }
    }
    for (const auto& [name, archs] : *b.kernels) {
      if (!a.kernels->contains(name)) come.push_back(name);
    }
    if (!gone.empty())
      add(Effect::lost, {}, fmt::format("{}: {}", analysis::counted(gone.size(), "kernel"), named(gone)),
          gone);
    for (auto& [arch, names] : lacking)
      add(Effect::lost, arch,
          fmt::format("{} no longer in {}: {}", analysis::counted(names.size(), "kernel"), arch,
                      named(names)),
          names);
    if (!come.empty())
      add(Effect::gained, {}, fmt::format("{}: {}", analysis::counted(come.size(), "kernel"), named(come)),
          come);
  }

 private:
  void add(Effect effect, const std::string& arch, std::string text, std::vector<std::string> names) {
    changes_.push_back({.effect = effect,
                        .what = "kernel",
                        .pair = number_,
                        .arch = arch,
                        .before = {},
                        .after = {},
                        .text = std::move(text),
                        .kernels = std::move(names)});
  }
  std::size_t number_;
  std::vector<Change>& changes_;
};

std::string archs_text(const Object& object) {
  const std::set<std::string> archs = archs_of(object);
  return analysis::join({archs.begin(), archs.end()}, ", ");
}

/// An object that one side alone has. A process that did not load it lost nothing.
void alone(const Pair& pair, std::size_t number, const Options& options, bool loaded,
           std::vector<Change>& changes) {
  const Object& object = pair.any();
  const bool gone = pair.b == nullptr;
  Change change{.effect = loaded ? Effect::changed
                          : gone ? Effect::lost
                                 : Effect::gained,
                .what = "object",
                .pair = number,
                .arch = {},
                .before = gone ? archs_text(object) : "",
                .after = gone ? "" : archs_text(object),
                .text = fmt::format("{}; built for {}",
                                    loaded ? gone ? "not loaded any more" : "not loaded before"
                                    : gone ? "is not there any more"
                                           : "is new",
                                    archs_text(object)),
                .kernels = {}};
  const auto serves = [&](image::Arch target) {
    return outcome_on(object, target, options.driver) < scan::Outcome::part;
  };
  if (!options.targets.empty() && std::none_of(options.targets.begin(), options.targets.end(), serves))
    change.effect = Effect::changed;
  changes.push_back(std::move(change));
}

void add_notes(const Side& side, const char* name, std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < std::min(side.notes.size(), kNotes); ++i)
    notes.push_back(fmt::format("{}: {}", name, side.notes[i]));
  if (side.notes.size() > kNotes)
    notes.push_back(fmt::format("{}: and {} more notes", name, side.notes.size() - kNotes));
}

/// What weakens the comparison.
void add_doubts(Diff& diff) {
  if (diff.a.kind == SideKind::scan) {
    if (!diff.b.notes.empty())
      diff.notes.emplace_back("B could not be read whole: what is missing there may not be lost");
    return;
  }
  std::set<std::string> a(diff.a.devices.begin(), diff.a.devices.end());
  std::set<std::string> b(diff.b.devices.begin(), diff.b.devices.end());
  if (a != b)
    diff.notes.push_back(fmt::format("the GPUs differ: A is of {}, B of {}",
                                     a.empty() ? "none" : analysis::enumerate({a.begin(), a.end()}),
                                     b.empty() ? "none" : analysis::enumerate({b.begin(), b.end()})));
  if (diff.b.verdict == "incomplete" || diff.b.verdict == "blind" || diff.b.verdict == "no-cuda")
    diff.notes.push_back(
        fmt::format("B's verdict is {}: what does not occur there may not be fixed", diff.b.verdict));
}

}  // namespace

bool Diff::lost() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.effect == Effect::lost; });
}
bool Diff::gained() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.effect == Effect::gained; });
}

void compare(const Options& options, Diff& diff) {
  diff.targets = options.targets;
  diff.driver = options.driver;
  if (diff.a.has_objects && diff.b.has_objects)
    diff.pairs = match(diff.a.objects, diff.b.objects, diff.a.kind == SideKind::scan);
  for (std::size_t i = 0; i < diff.pairs.size(); ++i) {
    const Pair& pair = diff.pairs[i];
    if ((pair.a != nullptr && !pair.a->images_known) || (pair.b != nullptr && !pair.b->images_known))
      continue;
    if (pair.a == nullptr || pair.b == nullptr) {
      alone(pair, i, options, diff.a.kind == SideKind::reports, diff.changes);
      continue;
    }
    compare_images(pair, i, options, diff.changes);
    if (pair.a->kernels && pair.b->kernels) Kernels(i, diff.changes).compare(*pair.a, *pair.b);
  }
  compare_findings(options, diff);
  std::stable_sort(diff.changes.begin(), diff.changes.end(), [](const Change& a, const Change& b) {
    return std::pair(a.effect, a.pair.value_or(kLast)) < std::pair(b.effect, b.pair.value_or(kLast));
  });
  add_doubts(diff);
  add_notes(diff.a, "A", diff.notes);
  add_notes(diff.b, "B", diff.notes);
}

}  // namespace kshim::diff
