// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "analyzer/compare/diff.h"

namespace kshim::compare {
namespace {

constexpr std::size_t kNamed = 3;
constexpr std::size_t kNotes = 10;
constexpr std::size_t kLast = static_cast<std::size_t>(-1);  // what belongs to no object comes last

std::string named(const std::vector<std::string>& kernels) {
  const auto names = mapped(std::span(kernels).first(std::min(kernels.size(), kNamed)),
                            [](const std::string& kernel) { return shorten(kernel, 60); });
  std::string out = join(names, ", ");
  if (kernels.size() > kNamed) out += fmt::format(" and {} more", kernels.size() - kNamed);
  return out;
}

std::set<std::string> archs_of(const Object& object) {
  std::set<std::string> out;
  for (const ImageCount& row : object.images) out.emplace(name(row.candidate.kind, row.candidate.arch));
  return out;
}

void compare_kernels(const Pair& pair, std::size_t number, std::vector<Change>& changes) {
  std::vector<std::string> gone;
  std::vector<std::string> come;
  std::map<std::string, std::vector<std::string>> lacking;  // by architectures that the file still has
  const std::set<std::string> left = archs_of(*pair.b);
  for (const auto& [name, archs] : *pair.a->kernels) {
    const auto now = pair.b->kernels->find(name);
    if (now == pair.b->kernels->end()) {
      gone.push_back(name);
      continue;
    }
    for (const std::string& arch : archs)
      if (!contains(now->second, arch) && left.contains(arch)) lacking[arch].push_back(name);
  }
  for (const auto& [name, archs] : *pair.b->kernels)
    if (!pair.a->kernels->contains(name)) come.push_back(name);
  const auto add = [&](Effect effect, const std::string& arch, const std::string& what,
                       std::vector<std::string> names) {
    if (names.empty()) return;
    changes.push_back({.effect = effect,
                       .what = "kernel",
                       .pair = number,
                       .arch = arch,
                       .text = fmt::format("{}{}: {}", counted(names.size(), "kernel"), what, named(names)),
                       .kernels = std::move(names)});
  };
  add(Effect::lost, {}, {}, std::move(gone));
  for (auto& [arch, names] : lacking) add(Effect::lost, arch, " no longer in " + arch, std::move(names));
  add(Effect::gained, {}, {}, std::move(come));
}

/// An object that one side alone has.
void alone(const Pair& pair, std::size_t number, const DiffRequest& options, std::vector<Change>& changes) {
  const Object& object = pair.any();
  const bool gone = pair.b == nullptr;
  const std::set<std::string> list = archs_of(object);
  const std::string archs = join({list.begin(), list.end()}, ", ");
  Change change{.effect = gone ? Effect::lost : Effect::gained,
                .what = "object",
                .pair = number,
                .text = fmt::format("{}; built for {}", gone ? "is not there any more" : "is new", archs),
                .before = gone ? archs : "",
                .after = gone ? "" : archs};
  const auto serves = [&](image::Arch target) {
    return outcome_on(object, target, options.driver) < Outcome::part;
  };
  if (!options.targets.empty() && std::ranges::none_of(options.targets, serves))
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
      diff.notes.emplace_back("B was read only in part, so some \"lost\" entries may be wrong");
    return;
  }
  std::set<std::string> a(diff.a.devices.begin(), diff.a.devices.end());
  std::set<std::string> b(diff.b.devices.begin(), diff.b.devices.end());
  if (a != b)
    diff.notes.push_back(fmt::format("the GPUs differ: A is of {}, B of {}",
                                     a.empty() ? "none" : enumerate({a.begin(), a.end()}),
                                     b.empty() ? "none" : enumerate({b.begin(), b.end()})));
  if (diff.b.verdict == "incomplete" || diff.b.verdict == "blind" || diff.b.verdict == "no-cuda" ||
      diff.b.verdict == "idle")
    diff.notes.push_back(fmt::format(
        "B's verdict is {}: a finding that is absent there is not necessarily fixed", diff.b.verdict));
}

/// "Flash_Attn" and "flash-attn" are one package.
std::string folded(std::string_view name) {
  std::string out = to_lower(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

std::string whole_path(const Object& object) { return object.place + "!" + object.member; }

/// The path inside a distribution: a wheel's member, or what follows site-packages.
std::string inner_path(const Object& object) {
  if (!object.member.empty()) return distribution(basename_of(object.place)) + "!" + object.member;
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = object.place.rfind(folder);
    if (at != std::string::npos) return object.place.substr(at + folder.size());
  }
  return {};
}

std::string file_of(const Object& object) {
  return std::string(basename_of(object.member.empty() ? object.place : object.member));
}

std::string in_package(const Object& object) {
  return object.package.empty() ? std::string() : folded(object.package) + "!" + stem(file_of(object));
}

struct Key {
  const char* name;
  std::string (*of)(const Object&);  ///< empty: this object has none
  bool repeated;                     ///< objects of one key are paired in their order
};
constexpr Key kKeys[] = {{"path", whole_path, true},
                         {"package", inner_path, true},
                         {"path", [](const Object& object) { return object.member; }, false},
                         {"package", in_package, false},
                         {"name", file_of, false},
                         {"name", [](const Object& object) { return stem(file_of(object)); }, false},
                         {"build-id", [](const Object& object) { return object.build_id; }, false}};

using Places = std::unordered_map<std::string, std::vector<std::size_t>>;

Places places_of(const std::vector<Object>& objects, const std::vector<bool>& taken, const Key& key) {
  Places out;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (taken[i]) continue;
    if (std::string text = key.of(objects[i]); !text.empty()) out[std::move(text)].push_back(i);
  }
  return out;
}

/// The object of a finding, as a word that both sides have for it.
class Objects {
 public:
  explicit Objects(const std::vector<Pair>& pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].a != nullptr) a_.try_emplace(pairs[i].a->name, i);
      if (pairs[i].b != nullptr) b_.try_emplace(pairs[i].b->name, i);
    }
  }
  std::optional<std::size_t> pair(const SideFinding& finding, bool before) const {
    const auto& names = before ? a_ : b_;
    const auto found = names.find(finding.object);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  }
  std::string word(const SideFinding& finding, bool before) const {
    if (const auto number = pair(finding, before)) return fmt::format("#{}", *number);
    const std::size_t mark = finding.object.rfind('!');
    return stem(basename_of(mark == std::string::npos ? finding.object : finding.object.substr(mark + 1)));
  }

 private:
  std::unordered_map<std::string, std::size_t> a_;
  std::unordered_map<std::string, std::size_t> b_;
};

bool counts(const SideFinding& finding, const DiffRequest& options) {
  if (options.targets.empty() || finding.need.empty()) return true;
  const auto need = image::parse_arch(finding.need);
  return !need || contains(mapped(options.targets, &image::Arch::cc), need->cc);
}

class Findings {
 public:
  Findings(const DiffRequest& options, Diff& diff) : options_(options), diff_(diff), objects_(diff.pairs) {}

  void run() {
    std::vector<const SideFinding*> before = wanted(diff_.a.findings);
    std::vector<const SideFinding*> after = wanted(diff_.b.findings);
    // The same cause first; what is left and about the same trouble has another one now.
    pair_up(before, after, [this](const SideFinding& finding, bool old) {
      return finding.cause + '\n' + objects_.word(finding, old) + '\n' + finding.need + '\n' +
             (finding.code ? std::to_string(*finding.code) : "");
    });
    pair_up(before, after, [this](const SideFinding& finding, bool old) {
      return finding.object.empty() ? std::string() : objects_.word(finding, old) + '\n' + finding.need;
    });
    alone(before, true, Effect::gained, diff_.fixed);
    alone(after, false, Effect::lost, diff_.broken);
  }

 private:
  /// Without those of a scan that are about a target: what images say of it is compared as images.
  std::vector<const SideFinding*> wanted(const std::vector<SideFinding>& findings) const {
    std::vector<const SideFinding*> out;
    for (const SideFinding& finding : findings)
      if (diff_.a.kind != SideKind::scan || diff_.targets.empty() || finding.need.empty())
        out.push_back(&finding);
    return out;
  }

  void alone(const std::vector<const SideFinding*>& findings, bool old, Effect effect,
             std::vector<SideFinding>& out) {
    for (const SideFinding* finding : findings) {
      out.push_back(*finding);
      if (finding->severity > Severity::info)
        add(counts(*finding, options_) ? effect : Effect::changed, *finding, old, finding->text);
    }
  }

  template <class Key>
  void pair_up(std::vector<const SideFinding*>& before, std::vector<const SideFinding*>& after, Key key) {
    std::unordered_multimap<std::string, const SideFinding*> theirs;
    for (auto it = after.rbegin(); it != after.rend(); ++it) {
      if (std::string text = key(**it, false); !text.empty()) theirs.emplace(std::move(text), *it);
    }
    std::vector<const SideFinding*> left;
    std::unordered_set<const SideFinding*> used;
    for (const SideFinding* finding : before) {
      const std::string text = key(*finding, true);
      const auto found = text.empty() ? theirs.end() : theirs.find(text);
      if (found == theirs.end()) {
        left.push_back(finding);
        continue;
      }
      used.insert(found->second);
      both(*finding, *found->second);
      theirs.erase(found);
    }
    before = std::move(left);
    std::erase_if(after, [&](const SideFinding* finding) { return used.contains(finding); });
  }

  void both(const SideFinding& a, const SideFinding& b) {
    if (a.cause == b.cause && a.severity == b.severity) {
      diff_.stayed.push_back(b);
      return;
    }
    diff_.other.push_back({a, b});
    Effect effect = b.severity > a.severity   ? Effect::lost
                    : b.severity < a.severity ? Effect::gained
                                              : Effect::changed;
    if (!counts(b, options_)) effect = Effect::changed;
    Change& change =
        add(effect, b, false, fmt::format("{} (was {}: {})", b.text, to_name(a.severity), a.cause));
    change.before = a.cause;
    change.after = b.cause;
  }

  Change& add(Effect effect, const SideFinding& finding, bool before, std::string text) {
    diff_.changes.push_back({.effect = effect,
                             .what = "finding",
                             .pair = objects_.pair(finding, before),
                             .arch = finding.need,
                             .text = std::move(text),
                             .before = before ? finding.cause : "",
                             .after = before ? "" : finding.cause});
    return diff_.changes.back();
  }

  const DiffRequest& options_;
  Diff& diff_;
  Objects objects_;
};

}  // namespace

bool Diff::lost() const {
  return std::ranges::any_of(changes, [](const Change& change) { return change.effect == Effect::lost; });
}
bool Diff::gained() const {
  return std::ranges::any_of(changes, [](const Change& change) { return change.effect == Effect::gained; });
}

void compare_sides(const DiffRequest& options, Diff& diff) {
  diff.targets = options.targets;
  diff.driver = options.driver;
  diff.pairs = match(diff.a.objects, diff.b.objects);
  for (std::size_t i = 0; i < diff.pairs.size(); ++i) {
    const Pair& pair = diff.pairs[i];
    if (pair.a == nullptr || pair.b == nullptr) {
      alone(pair, i, options, diff.changes);
      continue;
    }
    compare_images(pair, i, options, diff.changes);
    if (pair.a->kernels && pair.b->kernels) compare_kernels(pair, i, diff.changes);
  }
  compare_findings(options, diff);
  std::ranges::stable_sort(diff.changes, [](const Change& a, const Change& b) {
    return std::pair(a.effect, a.pair.value_or(kLast)) < std::pair(b.effect, b.pair.value_or(kLast));
  });
  add_doubts(diff);
  add_notes(diff.a, "A", diff.notes);
  add_notes(diff.b, "B", diff.notes);
}

std::string stem(std::string_view file) {
  std::string name(file);
  const std::size_t so = name.find(".so");
  const bool library = so != std::string::npos && (so + 3 == name.size() || name[so + 3] == '.');
  const std::string end = library ? ".so" : std::string();
  if (library) name.resize(so);
  // cpython-311-x86_64-linux-gnu, abi3
  for (const std::string_view tag : {".cpython-", ".abi3", ".pypy"}) {
    const std::size_t at = name.find(tag);
    if (at != std::string::npos && at != 0) name.resize(at);
  }
  // What auditwheel adds: 8 digits of a hash.
  constexpr std::size_t kHash = 8;
  const std::size_t dash = name.rfind('-');
  if (dash != std::string::npos && dash != 0 && name.size() - dash - 1 == kHash &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dash) + 1, name.end(), is_hex))
    name.resize(dash);
  return name + end;
}

std::string distribution(std::string_view archive) {
  // PEP 427: name-version(-build)?-python-abi-platform.whl
  std::size_t end = archive.find('-');
  while (end != std::string_view::npos && (end + 1 == archive.size() || !is_digit(archive[end + 1])))
    end = archive.find('-', end + 1);
  return folded(archive.substr(0, end));
}

std::vector<Pair> match(const std::vector<Object>& a, const std::vector<Object>& b) {
  std::vector<Pair> pairs(a.size());
  std::vector<bool> taken_a(a.size());
  std::vector<bool> taken_b(b.size());
  const auto pair_up = [&](std::size_t i, std::size_t k, const char* how) {
    pairs[i] = {&a[i], &b[k], how};
    taken_a[i] = taken_b[k] = true;
  };
  if (a.size() == 1 && b.size() == 1)
    pair_up(0, 0, stem(file_of(a[0])) == stem(file_of(b[0])) ? "name" : "path");
  for (const Key& key : kKeys) {
    const Places in_a = places_of(a, taken_a, key);
    const Places in_b = places_of(b, taken_b, key);
    for (const auto& [text, ours] : in_a) {
      const auto found = in_b.find(text);
      if (found == in_b.end()) continue;
      const auto& theirs = found->second;
      if (!key.repeated && (ours.size() != 1 || theirs.size() != 1)) continue;
      for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        pair_up(ours[i], theirs[i], key.name);
    }
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!taken_a[i]) pairs[i].a = &a[i];
  }
  for (std::size_t k = 0; k < b.size(); ++k) {
    if (!taken_b[k]) pairs.push_back({nullptr, &b[k], ""});
  }
  return pairs;
}

void compare_findings(const DiffRequest& options, Diff& diff) { Findings(options, diff).run(); }

}  // namespace kshim::compare
