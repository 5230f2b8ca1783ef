// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/build_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "analyzer/advise/arch_lists.h"
#include "analyzer/core/text.h"
#include "kshim/image/compute_capability.h"

namespace kshim::analysis {
namespace {

using image::Arch;
using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Suffix;
using image::Version;

template <class Visit>
void each_target(const ToolkitRow& toolkit, Visit&& visit) {
  std::string_view rest = toolkit.targets;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (const auto arch = image::parse_arch(word)) visit(*arch);
  }
}

// PTX of a Jetson's target would compile for a desktop GPU too, but is nobody's choice for one.
bool odd_ptx(ImageKind kind, ComputeCapability target, ComputeCapability device) {
  return kind == ImageKind::ptx && target != device && image::is_tegra(target);
}

std::optional<Arch> best_target(const ToolkitRow& toolkit, ImageKind kind, ComputeCapability device,
                                Version driver) {
  std::optional<Arch> best;
  each_target(toolkit, [&](Arch arch) {
    if (arch.suffix != Suffix::none || odd_ptx(kind, arch.cc, device)) return;
    if (!image::judge({kind, arch, toolkit.isa}, {device, driver, {}}).fits) return;
    if (!best || *best < arch) best = arch;
  });
  return best;
}

PlannedArch& at(std::vector<PlannedArch>& archs, Arch arch) {
  auto found =
      std::find_if(archs.begin(), archs.end(), [&](const PlannedArch& row) { return row.arch == arch; });
  if (found == archs.end()) found = archs.insert(archs.end(), {arch, false, false, false});
  return *found;
}

bool builds_all(const ToolkitRow& toolkit, const std::vector<Candidate>& have) {
  return std::all_of(have.begin(), have.end(), [&](const Candidate& image) {
    return image.kind == ImageKind::ltoir || builds_for(toolkit, image.arch);
  });
}

// nvcc refuses sm_120 beside sm_120f ("The same GPU code generated for non family-specific and
// family-specific GPU arch", measured with 13.0; PTX of one beside machine code of the other is accepted).
// The f image serves the same GPUs.
void settle_families(std::vector<PlannedArch>& archs) {
  for (PlannedArch& row : archs) {
    if (row.arch.suffix != Suffix::none || !row.sass) continue;
    PlannedArch* family = family_sibling(archs, row);
    if (family == nullptr || !family->sass) continue;
    row.sass = false;
    family->added = family->added || row.added;
    row.added = false;
  }
  archs.erase(std::remove_if(archs.begin(), archs.end(),
                             [](const PlannedArch& row) { return !row.sass && !row.ptx; }),
              archs.end());
}

bool emits_code_for(const ToolkitRow& toolkit, ComputeCapability device) {
  return best_target(toolkit, ImageKind::cubin, device, {}).has_value();
}

}  // namespace

std::optional<BuildPlan> plan_build(const std::vector<Candidate>& have, ComputeCapability device,
                                    const ToolkitRow& toolkit, Version driver) {
  BuildPlan plan;
  plan.toolkit = &toolkit;
  for (const Candidate& image : have) {
    if (image.kind == ImageKind::ltoir) continue;
    if (!builds_for(toolkit, image.arch)) {
      plan.dropped.push_back(image);
      continue;
    }
    PlannedArch& row = at(plan.archs, image.arch);
    (image.kind == ImageKind::cubin ? row.sass : row.ptx) = true;
  }
  auto target = best_target(toolkit, ImageKind::cubin, device, driver);
  if (!target) {
    target = best_target(toolkit, ImageKind::ptx, device, driver);
    plan.by_ptx = true;
  }
  if (!target) return std::nullopt;
  PlannedArch& row = at(plan.archs, *target);
  (plan.by_ptx ? row.ptx : row.sass) = true;
  row.added = true;
  add_newest_ptx(plan.archs);
  settle_families(plan.archs);
  std::sort(plan.archs.begin(), plan.archs.end(),
            [](const PlannedArch& a, const PlannedArch& b) { return a.arch < b.arch; });
  return plan;
}

const ToolkitRow* recommend_toolkit(ComputeCapability device, std::optional<Version> near, Version driver,
                                    const std::vector<Candidate>& have) {
  const ToolkitRow* oldest = nullptr;
  const ToolkitRow* newest = nullptr;
  const ToolkitRow* complete = nullptr;
  const ToolkitRow* nearest = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (!emits_code_for(row, device)) continue;
    if (oldest == nullptr) oldest = &row;
    if (driver.known() && row.version > driver) continue;
    newest = &row;
    if (builds_all(row, have)) complete = &row;
    if (near && row.version.major == near->major) nearest = &row;
  }
  if (nearest != nullptr) return nearest;
  if (complete != nullptr) return complete;
  return newest != nullptr ? newest : oldest;
}

const ToolkitRow* last_with_code_for(ComputeCapability device) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (emits_code_for(row, device)) found = &row;
  }
  return found;
}

std::string_view pip_install(Pip how) {
  return how == Pip::here ? "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps"
                          : "pip install --no-cache-dir --force-reinstall --no-deps";
}

std::string expand(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words) {
  const bool other = !words.toolkit.empty();
  return expand(recipe.command,
                {{"pip", std::string(pip_install(recipe.pip))},
                 {"nvcc", words.nvcc},
                 {"mode", words.mode},
                 {"toolkit", other ? words.toolkit : "/usr/local/cuda"},
                 {"home", other ? fmt::format("CUDA_HOME={} ", words.toolkit) : ""},
                 {"path", other ? fmt::format("PATH={}/bin:\"$PATH\" ", words.toolkit) : ""},
                 {"compiler", other ? fmt::format(" --fresh -DCMAKE_CUDA_COMPILER={}", words.nvcc) : ""},
                 {"cuda", image::to_name(plan.toolkit->version).c_str()},
                 {"list", arch_list(plan, recipe.list)},
                 {"newest", newest_plain(plan)},
                 {"output", words.output},
                 {"build", words.build},
                 {"package", words.package},
                 {"tag", words.tag},
                 {"program", words.program}});
}

}  // namespace kshim::analysis
