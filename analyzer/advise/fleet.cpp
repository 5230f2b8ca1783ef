// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fleet.h"

#include "kshim/image/compute_capability.h"

namespace kshim::advise {
using data::ToolkitRow;

namespace {

using image::Arch;
using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Suffix;
using image::Version;

bool serves(const Candidate& image, ComputeCapability gpu) { return image::judge(image, {gpu, {}, {}}).fits; }
bool serves(Arch arch, ComputeCapability gpu) { return serves({ImageKind::cubin, arch, {}}, gpu); }

bool holds(const std::vector<ComputeCapability>& list, ComputeCapability gpu) {
  return core::contains(list, gpu);
}

/// The list that one toolkit would build.
struct Draft {
  const ToolkitRow* toolkit = nullptr;
  std::vector<Arch> archs;
  std::vector<ComputeCapability> compiled, unserved;
  std::size_t known = 0;     ///< of the archs, that the file has
  std::size_t given_up = 0;  ///< of what the file has for a GPU of the fleet alone
};

class Planner {
 public:
  explicit Planner(const FleetQuestion& question) : question_(question) {
    for (const device_code::ImageCount& row : question.images) {
      if (row.candidate.kind == ImageKind::cubin) has_.push_back(row.candidate.arch);
    }
  }

  /// The fewest architectures that serve all: the one that serves the lowest GPU that is left serves as many
  /// of the higher ones as any other does, or more.
  Draft smallest(const ToolkitRow& toolkit) const {
    Draft out = start(toolkit);
    const std::vector<Arch>& targets = toolkit.targets;
    for (const ComputeCapability gpu : question_.gpus) {
      if (covered(out.archs, gpu)) continue;
      const Arch* best = nullptr;
      for (const Arch& arch : targets) {
        if (arch.suffix != Suffix::none || !serves(arch, gpu)) continue;
        if (best == nullptr || rank(out.archs, arch) > rank(out.archs, *best)) best = &arch;
      }
      if (best != nullptr) {
        out.archs.push_back(*best);
      } else {
        out.unserved.push_back(gpu);
      }
    }
    finish(out);
    return out;
  }

  FleetList list_of(const Draft& draft) const {
    FleetList out;
    for (const Arch& arch : draft.archs) {
      FleetArch row{arch, is_added(arch), {}};
      for (const ComputeCapability gpu : question_.gpus) {
        // The highest that fits is the one that a driver takes.
        const bool taken = serves(arch, gpu) && std::ranges::none_of(draft.archs, [&](Arch other) {
                             return arch < other && serves(other, gpu);
                           });
        if (taken) row.serves.push_back(gpu);
      }
      out.archs.push_back(std::move(row));
    }
    return out;
  }

  bool builds(const ToolkitRow& toolkit, const Draft& draft) const {
    return std::ranges::all_of(draft.archs, [&](Arch arch) { return builds_for(toolkit, arch); });
  }

 private:
  // What the file has for a GPU of the fleet alone, by its suffix, was made on purpose: it stays.
  Draft start(const ToolkitRow& toolkit) const {
    Draft out;
    out.toolkit = &toolkit;
    for (const Arch& arch : has_) {
      const bool wanted =
          arch.suffix != Suffix::none &&
          std::ranges::any_of(question_.gpus, [&](ComputeCapability gpu) { return serves(arch, gpu); });
      if (!wanted || core::contains(out.archs, arch)) continue;
      if (builds_for(toolkit, arch)) {
        out.archs.push_back(arch);
      } else {
        ++out.given_up;
      }
    }
    return out;
  }

  // An image for one GPU or family beside others does not have every kernel: where a module lacks code it is
  // not enough.
  bool covered(const std::vector<Arch>& archs, ComputeCapability gpu) const {
    return std::ranges::any_of(archs, [&](Arch arch) {
      return serves(arch, gpu) && (arch.suffix == Suffix::none || !holds(question_.lacking, gpu));
    });
  }

  bool has(Arch arch) const { return core::contains(has_, arch); }

  // It is new to the file, or to those modules that lack code for a GPU that it serves.
  bool is_added(Arch arch) const {
    return !has(arch) ||
           (arch.suffix == Suffix::none &&
            std::ranges::any_of(question_.lacking, [&](ComputeCapability gpu) { return serves(arch, gpu); }));
  }

  /// GPUs that are still without code and that it serves; then what the file has; then the closest.
  std::tuple<std::size_t, bool, Arch> rank(const std::vector<Arch>& archs, Arch arch) const {
    const auto fresh = std::ranges::count_if(
        question_.gpus, [&](ComputeCapability gpu) { return serves(arch, gpu) && !covered(archs, gpu); });
    return {static_cast<std::size_t>(fresh), has(arch), arch};
  }

  // GPUs that nothing is built for may compile the PTX of what is: later at each first start.
  void finish(Draft& draft) const {
    std::ranges::sort(draft.archs);
    draft.known =
        static_cast<std::size_t>(std::ranges::count_if(draft.archs, [&](Arch arch) { return has(arch); }));
    const Arch newest = newest_of(draft.archs);
    std::vector<ComputeCapability> left;
    for (const ComputeCapability gpu : draft.unserved) {
      const bool compiles = newest.cc.major != 0 && serves({ImageKind::ptx, newest, draft.toolkit->isa}, gpu);
      (compiles ? draft.compiled : left).push_back(gpu);
    }
    draft.unserved = std::move(left);
  }

 public:
  /// The newest without a suffix, and not a Jetson's where there is another: the PTX of it compiles for what
  /// comes.
  static Arch newest_of(const std::vector<Arch>& archs) {
    Arch out;
    Arch tegra;
    for (const Arch& arch : archs) {
      if (arch.suffix != Suffix::none) continue;
      Arch& slot = image::is_tegra(arch.cc) ? tegra : out;
      slot = std::max(slot, arch);
    }
    return out.cc.major != 0 ? out : tegra;
  }

 private:
  const FleetQuestion& question_;
  std::vector<Arch> has_;
};

void complete(FleetQuestion& question) {
  std::ranges::sort(question.gpus);
  question.gpus.erase(std::unique(question.gpus.begin(), question.gpus.end()), question.gpus.end());
  std::erase_if(question.lacking, [&](ComputeCapability gpu) { return !holds(question.gpus, gpu); });
  for (const ComputeCapability gpu : question.gpus) {
    const bool any = std::ranges::any_of(
        question.images, [&](const device_code::ImageCount& row) { return serves(row.candidate, gpu); });
    if (!any && !question.images.empty() && !holds(question.lacking, gpu)) question.lacking.push_back(gpu);
  }
  std::ranges::sort(question.lacking);
  question.lacking.erase(std::unique(question.lacking.begin(), question.lacking.end()),
                         question.lacking.end());
}

}  // namespace

std::optional<FleetPlan> plan_fleet(FleetQuestion question) {
  complete(question);
  if (question.lacking.empty()) return std::nullopt;
  const Planner planner(question);
  // The toolkit that serves most; of those the shortest list, the one nearest to what the file has, and the
  // newest.
  const auto worth = [](const Draft& draft) {
    return std::tuple(draft.unserved.size(), draft.compiled.size(), draft.given_up, draft.archs.size(),
                      draft.archs.size() - draft.known);
  };
  std::optional<Draft> best;
  for (const ToolkitRow& toolkit : data::toolkits()) {
    Draft draft = planner.smallest(toolkit);
    if (!best || worth(draft) <= worth(*best)) best = std::move(draft);
  }
  FleetPlan out;
  out.gpus = question.gpus;
  out.lacking = question.lacking;
  if (!best) return out;
  out.smallest = planner.list_of(*best);
  out.ptx = Planner::newest_of(best->archs);
  out.compiled = best->compiled;
  out.unserved = best->unserved;
  for (const ToolkitRow& toolkit : data::toolkits()) {
    if (!best->archs.empty() && planner.builds(toolkit, *best)) out.toolkits.push_back(toolkit.version);
  }
  return out;
}

}  // namespace kshim::advise
