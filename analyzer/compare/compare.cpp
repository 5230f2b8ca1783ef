// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"

namespace kshim::compare {
using core::mapped;
using core::Severity;
using render::Outcome;

namespace {

using image::Arch;
using image::ImageKind;
using image::Version;

constexpr std::size_t kNamed = 3;
constexpr std::size_t kLast = static_cast<std::size_t>(-1);  // what belongs to no object comes last

Effect counted_effect(bool counts, bool lost) {
  return !counts ? Effect::changed : lost ? Effect::lost : Effect::gained;
}

/// How an object does on a GPU: as its modules were judged, else by its images alone.
Outcome outcome_on(const Object& object, Arch target, Version driver) {
  const auto judged = object.targets.find(target);
  if (judged != object.targets.end()) return judged->second;
  const auto candidates = mapped(object.images, &device_code::ImageCount::candidate);
  switch (image::select_image(candidates, {.device = target.cc, .driver = driver, .jit = {}}).choice) {
    case image::Choice::sass:
      return Outcome::sass;
    case image::Choice::jit:
      return Outcome::jit;
    default:
      return Outcome::none;
  }
}

constexpr const char* kWas[] = {"needed none", "had code that fits", "had it compiled from PTX",
                                "had code for a part", "had no code"};
constexpr const char* kIs[] = {"needs none", "has code that fits", "has it compiled from PTX now",
                               "has code for a part", "finds no code now"};

/// All images of one kind and architecture.
struct Images {
  Version isa = {};  ///< the newest
  std::uint64_t count = 0;
};
using ByArch = std::map<std::tuple<bool, ImageKind, Arch>, Images>;  // cubins first

ByArch by_arch(const Object& object) {
  ByArch out;
  for (const auto& [image, count, bytes, stored] : object.images) {
    Images& images = out[{image.kind != ImageKind::cubin, image.kind, image.arch}];
    images.isa = std::max(images.isa, image.isa);
    images.count += count;
  }
  return out;
}

/// What became of one object, or, with `pair` empty, of no object in particular.
struct ObjectChanges {
  void add(Effect effect, std::string_view what, const std::string& arch, const std::string& text,
           const std::string& before = {}, const std::string& after = {}) {
    diff.changes.push_back({effect, std::string(what), number, arch, text, before, after});
  }

  void run() {
    if (pair.a == nullptr || pair.b == nullptr) return alone();
    const ByArch before = by_arch(*pair.a);
    const ByArch after = by_arch(*pair.b);
    for (const Arch target : diff.request.targets) judge("target", image::sm_name(target), {target});
    for (const bool gone : {true, false}) {
      for (const auto& [key, images] : gone ? before : after) {
        const auto& others = gone ? after : before;
        const auto& [_, kind, arch] = key;
        if (const auto other = others.find(key); other == others.end())
          one_side(kind, arch, others, gone);
        else if (gone)
          stayed(kind, arch, images, other->second);
      }
    }
    if (diff.request.targets.empty()) judge_gpus();
    if (pair.a->kernels && pair.b->kernels) compare_kernels(after);
  }

  void alone() {
    std::set<std::string> names;
    for (const device_code::ImageCount& row : pair.any().images) names.insert(name(row.candidate));
    const std::string archs = core::join({names.begin(), names.end()}, ", ");
    const bool gone = pair.b == nullptr;
    const auto& targets = diff.request.targets;
    const bool counts = targets.empty() || std::ranges::any_of(targets, [&](Arch target) {
                          return outcome_on(pair.any(), target, diff.request.driver) < Outcome::part;
                        });
    add(counted_effect(counts, gone), "object", {}, "the file, built for " + archs, gone ? archs : "",
        gone ? "" : archs);
  }

  Outcome was_on(Arch target) const { return outcome_on(*pair.a, target, diff.request.driver); }
  Outcome is_on(Arch target) const { return outcome_on(*pair.b, target, diff.request.driver); }

  /// What became of a GPU, or of several with one answer.
  void judge(std::string what, const std::string& name, const std::vector<Arch>& gpus,
             std::string_view prefix = {}) {
    const Outcome was = was_on(gpus.front());
    const Outcome is = is_on(gpus.front());
    if (was == is) return;
    const char* const before = kWas[static_cast<std::size_t>(was)];
    const char* const after = kIs[static_cast<std::size_t>(is)];
    add(is > was ? Effect::lost : Effect::gained, std::move(what), name,
        fmt::format("{}{}: {}, {}", prefix, name, before, after), before, after);
  }

  /// Code for an architecture that one side alone has. Where GPUs were named, only what becomes of these is a
  /// loss or a gain.
  void one_side(ImageKind kind, Arch arch, const ByArch& others, bool gone) {
    // PTX serves every newer GPU: older PTX on the other side serves all that this one does.
    const bool served = kind == ImageKind::ptx && arch.suffix == image::Suffix::none &&
                        std::ranges::any_of(others, [arch](const auto& row) {
                          const auto& [_, other, at] = row.first;
                          return other == ImageKind::ptx && at.suffix == arch.suffix && at.cc <= arch.cc;
                        });
    const std::string text = (kind == ImageKind::ptx ? "PTX for " : "") + name(kind, arch) +
                             (served ? "; older PTX serves its GPUs" : "");
    const bool counts = diff.request.targets.empty() && !served;
    add(counted_effect(counts, gone),
        kind == ImageKind::cubin ? "architecture" : std::string(image::to_name(kind)), name(kind, arch),
        text);
  }

  void stayed(ImageKind kind, Arch arch, const Images& was, const Images& is) {
    const std::string arch_name = name(kind, arch);
    if (is.count < was.count)
      add(Effect::changed, "images", arch_name,
          fmt::format("{}: {} of {} are left", arch_name, is.count, core::counted(was.count, "image")),
          std::to_string(was.count), std::to_string(is.count));
    if (kind != ImageKind::ptx || !was.isa.known() || !is.isa.known() || was.isa == is.isa) return;
    // A driver that was named and reads the new PTX is not harmed, nor are GPUs with code of their own.
    const auto& [targets, driver, kernels, jobs, progress] = diff.request;
    const auto compiled = [this](Arch target) { return is_on(target) == Outcome::jit; };
    const bool harmless = (driver.known() && is.isa <= image::ptx_isa_of_cuda(driver)) ||
                          (!targets.empty() && std::ranges::none_of(targets, compiled));
    add(counted_effect(!harmless, is.isa > was.isa), "ptx-isa", arch_name,
        fmt::format("PTX for {} is of version {} (CUDA {}), was {} (CUDA {})", arch_name, name(is.isa),
                    name(image::cuda_of_ptx_isa(is.isa)), name(was.isa),
                    name(image::cuda_of_ptx_isa(was.isa))),
        name(was.isa), name(is.isa));
  }

  void judge_gpus() {
    std::map<std::pair<Outcome, Outcome>, std::vector<Arch>> groups;
    for (const data::GpuRow& gpu : data::gpus())
      groups[{was_on({gpu.cc, {}}), is_on({gpu.cc, {}})}].push_back({gpu.cc, {}});
    for (const auto& [outcomes, archs] : groups)
      judge("gpu", core::join(mapped(archs, [](Arch arch) { return name(arch.cc); }), ", "), archs,
            "GPUs of ");
  }

  void compare_kernels(const ByArch& after) {
    std::map<std::pair<Effect, std::string>, std::vector<std::string>> lists;  // by architecture, else ""
    for (const auto& [kernel, archs] : *pair.a->kernels) {
      const auto now = pair.b->kernels->find(kernel);
      if (now == pair.b->kernels->end()) lists[{Effect::lost, ""}].push_back(kernel);
      if (now == pair.b->kernels->end()) continue;
      for (const auto& [key, images] : after)  // an architecture that is gone is said once
        if (const std::string arch = name(std::get<ImageKind>(key), std::get<Arch>(key));
            archs.contains(arch) && !now->second.contains(arch))
          lists[{Effect::lost, arch}].push_back(kernel);
    }
    for (const auto& [kernel, archs] : *pair.b->kernels)
      if (!pair.a->kernels->contains(kernel)) lists[{Effect::gained, ""}].push_back(kernel);
    for (auto& [key, kernels] : lists) {
      const auto& [effect, arch] = key;
      auto names = mapped(std::span(kernels).first(std::min(kernels.size(), kNamed)),
                          [](const std::string& kernel) { return core::shorten(kernel, 60); });
      if (kernels.size() > kNamed) names.push_back(fmt::format("and {} more", kernels.size() - kNamed));
      add(effect, "kernel", arch,
          fmt::format("{}{}{}: {}", core::counted(kernels.size(), "kernel"), arch.empty() ? "" : " for ",
                      arch, core::join(names, ", ")));
      diff.changes.back().kernels = std::move(kernels);
    }
  }

  Diff& diff;
  std::optional<std::size_t> number;
  const Pair& pair;
};

/// What weakens the comparison.
void add_notes(Diff& diff) {
  const auto devices = [](const Side& side) {
    const std::set<std::string> names(side.devices.begin(), side.devices.end());
    return names.empty() ? "none" : core::enumerate({names.begin(), names.end()});
  };
  if (!diff.a.reports && !diff.b.notes.empty())
    diff.notes.emplace_back("B was read only in part, so some \"lost\" entries may be wrong");
  if (devices(diff.a) != devices(diff.b))
    diff.notes.push_back(
        fmt::format("the GPUs differ: A is of {}, B of {}", devices(diff.a), devices(diff.b)));
  if (core::contains(std::array{"incomplete", "blind", "no-cuda", "idle"}, diff.b.verdict))
    diff.notes.push_back(fmt::format(
        "B's verdict is {}: a finding that is absent there is not necessarily fixed", diff.b.verdict));
  for (const auto& [side, letter] : {std::pair(&diff.a, 'A'), std::pair(&diff.b, 'B')}) {
    for (const std::string& note : side->notes) diff.notes.push_back(fmt::format("{}: {}", letter, note));
  }
}

std::string path_of(const Object& object) { return object.place + "!" + object.member; }
/// The path inside a distribution: a wheel's member, or what follows site-packages.
std::string inner_path(const Object& object) {
  if (!object.member.empty()) return object.member;
  const std::size_t at = object.place.rfind("-packages/");
  return at == std::string::npos ? "" : object.place.substr(at);
}
std::string stem_of(const Object& object) {
  return stem(core::basename_of(object.member.empty() ? object.place : object.member));
}

struct Key {
  const char* name;
  std::string (*of)(const Object&);  ///< empty: this object has none
  bool repeated;                     ///< objects of one key are paired in their order
};
constexpr Key kKeys[] = {{"path", path_of, true}, {"package", inner_path, true}, {"name", stem_of, false}};

/// Findings of both sides, by cause and by the objects that belong together.
class FindingChanges {
 public:
  explicit FindingChanges(Diff& diff) : diff_(diff) {
    for (std::size_t i = 0; i < diff.pairs.size(); ++i) {
      if (const Object* a = diff.pairs[i].a) pairs_[0].try_emplace(a->name, i);
      if (const Object* b = diff.pairs[i].b) pairs_[1].try_emplace(b->name, i);
    }
  }

  void run() {
    std::multimap<std::string, const SideFinding*> after;
    std::vector<const SideFinding*> before;
    for (const SideFinding& finding : diff_.b.findings)
      if (counts(finding)) after.emplace(key(finding, 1), &finding);
    for (const SideFinding& finding : diff_.a.findings)
      if (counts(finding)) before.push_back(&finding);
    // The same cause first; what is left and about the same object has another one now.
    for (const bool same_cause : {true, false}) {
      std::erase_if(before, [&](const SideFinding* a) {
        if (!same_cause && a->object.empty()) return false;
        auto [b, end] = after.equal_range(key(*a, 0));
        while (b != end && same_cause && (a->cause != b->second->cause || a->code != b->second->code)) ++b;
        if (b == end) return false;
        add(a, b->second);
        after.erase(b);
        return true;
      });
    }
    for (const SideFinding* finding : before) add(finding, nullptr);
    std::set<const SideFinding*> left;  // in the order of the list
    for (const auto& [key, finding] : after) left.insert(finding);
    for (const SideFinding* finding : left) add(nullptr, finding);
  }

 private:
  /// What a scan says of a target is compared as images.
  bool counts(const SideFinding& finding) const {
    return diff_.a.reports || diff_.request.targets.empty() || finding.need.empty();
  }
  std::optional<std::size_t> pair_of(const SideFinding& finding, std::size_t side) const {
    const auto at = pairs_[side].find(finding.object);
    return at == pairs_[side].end() ? std::nullopt : std::optional(at->second);
  }
  /// The object, as a word that both sides have for it, and what it needs.
  std::string key(const SideFinding& finding, std::size_t side) const {
    const auto pair = pair_of(finding, side);
    const std::string_view member = std::string_view(finding.object).substr(finding.object.rfind('!') + 1);
    return (pair ? fmt::format("#{}", *pair) : stem(core::basename_of(member))) + '\n' + finding.need;
  }

  void add(const SideFinding* a, const SideFinding* b) {
    const Severity was = a == nullptr ? Severity::info : a->severity;
    const Severity is = b == nullptr ? Severity::info : b->severity;
    const SideFinding& finding = b == nullptr ? *a : *b;
    const auto need = image::parse_arch(finding.need);
    const auto& targets = diff_.request.targets;
    const bool counts = targets.empty() || !need || core::contains(mapped(targets, &Arch::cc), need->cc);
    const bool both = a != nullptr && b != nullptr;
    const bool same = both && was == is && a->cause == b->cause;
    diff_.changes.push_back(
        {same ? Effect::same : counted_effect(counts && was != is, is > was), "finding",
         pair_of(finding, b == nullptr ? 0 : 1), finding.need,
         finding.text + (same || !both ? "" : fmt::format(" (was {}: {})", to_name(was), a->cause)),
         a == nullptr ? "" : a->cause, b == nullptr ? "" : b->cause});
  }

  Diff& diff_;
  std::unordered_map<std::string, std::size_t> pairs_[2];
};

}  // namespace

void compare_sides(Diff& diff) {
  diff.pairs = match(diff.a.objects, diff.b.objects);
  for (std::size_t i = 0; i < diff.pairs.size(); ++i) ObjectChanges{diff, i, diff.pairs[i]}.run();
  FindingChanges(diff).run();
  std::ranges::stable_sort(diff.changes, {}, [](const Change& change) {
    return std::pair(change.effect, change.pair.value_or(kLast));
  });
  add_notes(diff);
}

std::string stem(std::string_view file) {
  std::string name(file);
  const std::size_t so = name.find(".so");
  const bool library = so != std::string::npos && (so + 3 == name.size() || name[so + 3] == '.');
  const std::string end = library ? ".so" : "";
  if (library) name.resize(so);
  for (const std::string_view tag : {".cpython-", ".abi3", ".pypy"}) {
    const std::size_t at = name.find(tag);
    if (at != std::string::npos && at != 0) name.resize(at);
  }
  // What auditwheel adds: 8 digits of a hash.
  const std::size_t dash = name.rfind('-');
  if (dash != std::string::npos && dash != 0 && name.size() - dash == 9 &&
      std::ranges::all_of(name.substr(dash + 1), core::is_hex))
    name.resize(dash);
  return name + end;
}

std::vector<Pair> match(const std::vector<Object>& a, const std::vector<Object>& b) {
  std::vector<Pair> pairs = mapped(a, [](const Object& object) { return Pair{&object}; });
  std::set<const Object*> taken;
  const auto pair_up = [&](Pair& pair, const Object& other, const char* how) {
    pair.b = &other;
    pair.match = how;
    taken.insert(&other);
  };
  if (a.size() == 1 && b.size() == 1)
    pair_up(pairs[0], b[0], stem_of(a[0]) == stem_of(b[0]) ? "name" : "path");
  for (const Key& key : kKeys) {
    std::map<std::string, std::pair<std::vector<Pair*>, std::vector<const Object*>>> places;
    for (Pair& pair : pairs)
      if (pair.b == nullptr) places[key.of(*pair.a)].first.push_back(&pair);
    for (const Object& object : b)
      if (!taken.contains(&object)) places[key.of(object)].second.push_back(&object);
    places.erase("");
    for (auto& [text, place] : places) {
      auto& [ours, theirs] = place;
      if (!key.repeated && (ours.size() != 1 || theirs.size() != 1)) continue;
      for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        pair_up(*ours[i], *theirs[i], key.name);
    }
  }
  for (const Object& object : b)
    if (!taken.contains(&object)) pairs.push_back({nullptr, &object});
  return pairs;
}

}  // namespace kshim::compare
