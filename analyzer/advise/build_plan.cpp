// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/build_plan.h"

#include "analyzer/data/reach.h"
#include "kshim/image/compute_capability.h"

namespace kshim::advise {
using data::ToolkitRow;
using say::PlannedArch;

namespace {

using image::Arch;
using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Suffix;
using image::Version;

// PTX of a Jetson's target would compile for a desktop GPU too, but is nobody's choice for one.
bool odd_ptx(ImageKind kind, ComputeCapability target, ComputeCapability device) {
  return kind == ImageKind::ptx && target != device && image::is_tegra(target);
}

std::optional<Arch> best_target(const ToolkitRow& toolkit, ImageKind kind, ComputeCapability device,
                                Version driver) {
  std::optional<Arch> best;
  for (const Arch arch : toolkit.targets) {
    if (arch.suffix != Suffix::none || odd_ptx(kind, arch.cc, device)) continue;
    if (arch.cc == ComputeCapability{2, 1}) continue;  // there is no compute_21, and sm_20 runs on it
    if (!image::judge({kind, arch, toolkit.isa}, {device, driver, {}}).fits) continue;
    if (!best || *best < arch) best = arch;
  }
  return best;
}

PlannedArch& at(std::vector<PlannedArch>& archs, Arch arch) {
  auto found = std::ranges::find(archs, arch, &PlannedArch::arch);
  if (found == archs.end()) found = archs.insert(archs.end(), {arch, false, false, false});
  return *found;
}

bool builds_all(const ToolkitRow& toolkit, const std::vector<Candidate>& have) {
  return std::ranges::all_of(have, [&](const Candidate& image) {
    return image.kind == ImageKind::ltoir || builds_for(toolkit, image.arch);
  });
}

// The f image of the same compute capability; nullptr where there is none.
PlannedArch* family_sibling(std::vector<PlannedArch>& archs, const PlannedArch& plain) {
  for (PlannedArch& row : archs) {
    if (row.arch.cc == plain.arch.cc && row.arch.suffix == Suffix::f) return &row;
  }
  return nullptr;
}

// PTX of the newest plain architecture, so that GPUs which are newer still can compile it. There is always
// one: what is added for the device is plain.
void add_newest_ptx(std::vector<PlannedArch>& archs) {
  PlannedArch* newest = nullptr;
  for (PlannedArch& row : archs) {
    if (row.arch.suffix == Suffix::none && (newest == nullptr || newest->arch < row.arch)) newest = &row;
  }
  if (newest != nullptr) newest->ptx = true;
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
  std::erase_if(archs, [](const PlannedArch& row) { return !row.sass && !row.ptx; });
}

bool emits_code_for(const ToolkitRow& toolkit, ComputeCapability device) {
  return best_target(toolkit, ImageKind::cubin, device, {}).has_value();
}

}  // namespace

std::optional<say::BuildPlan> plan_build(const std::vector<Candidate>& have, ComputeCapability device,
                                         const ToolkitRow& toolkit, Version driver,
                                         const std::vector<ComputeCapability>& also) {
  say::BuildPlan plan;
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
  for (const ComputeCapability each : also) {
    const auto own = best_target(toolkit, ImageKind::cubin, each, driver);
    if (!own) continue;
    PlannedArch& other = at(plan.archs, *own);
    other.sass = other.added = true;
  }
  add_newest_ptx(plan.archs);
  settle_families(plan.archs);
  std::ranges::sort(plan.archs, {}, &PlannedArch::arch);
  return plan;
}

const ToolkitRow* recommend_toolkit(ComputeCapability device, std::optional<Version> near, Version driver,
                                    const std::vector<Candidate>& have) {
  const ToolkitRow* oldest = nullptr;
  const ToolkitRow* newest = nullptr;
  const ToolkitRow* complete = nullptr;
  const ToolkitRow* nearest = nullptr;
  for (const ToolkitRow& row : data::toolkits()) {
    if (!emits_code_for(row, device) || !data::can_ever_run(device, row.version)) continue;
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
  const auto rows = data::toolkits();
  const auto last = std::find_if(rows.rbegin(), rows.rend(),
                                 [&](const ToolkitRow& row) { return emits_code_for(row, device); });
  return last == rows.rend() ? nullptr : &*last;
}

}  // namespace kshim::advise
