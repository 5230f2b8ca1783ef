// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/compute_capability.h"

namespace kshim::image {
namespace {

constexpr ComputeCapabilityInfo kGpus[] = {
#define KSHIM_CC(major, minor, generation, chips, tegra, first_major, first_minor, last_major, last_minor) \
  {{major, minor}, generation, chips, tegra, {first_major, first_minor}, {last_major, last_minor}},
#include "kshim/knowledge/gpus.def"
};
constexpr FamilyRow kFamilies[] = {
#define KSHIM_FAMILY(image, device) {image, device},
#include "kshim/knowledge/gpus.def"
};
constexpr PtxTargetRow kTargets[] = {
#define KSHIM_PTX_TARGET(number, suffix, isa_major, isa_minor) \
  {number, Suffix::suffix, {isa_major, isa_minor}},
#include "kshim/knowledge/gpus.def"
};
constexpr PtxIsaRow kIsas[] = {
#define KSHIM_PTX_ISA(cuda_major, cuda_minor, isa_major, isa_minor) \
  {{cuda_major, cuda_minor}, {isa_major, isa_minor}},
#include "kshim/knowledge/toolkits.def"
};

constinit CompatTables g_tables{kGpus, kFamilies, kTargets, kIsas};

}  // namespace

const CompatTables& compat_tables() noexcept { return g_tables; }
void use_compat_tables(const CompatTables& tables) noexcept { g_tables = tables; }

const ComputeCapabilityInfo* find_compute_capability(ComputeCapability cc) noexcept {
  for (const ComputeCapabilityInfo& info : g_tables.gpus)
    if (info.cc == cc) return &info;
  return nullptr;
}

bool is_tegra(ComputeCapability cc) noexcept {
  const ComputeCapabilityInfo* info = find_compute_capability(cc);
  return info != nullptr && info->tegra;
}

bool in_family(ComputeCapability image, ComputeCapability device) noexcept {
  bool known = false;
  for (const FamilyRow& row : g_tables.families) {
    if (row.image != image.number()) continue;
    if (row.device == device.number()) return true;
    known = true;
  }
  // Newer devices than the rows still belong to a family that has rows: families have only grown towards
  // higher minors.
  if (known && find_compute_capability(device) != nullptr) return false;
  return image.major == device.major && image.minor <= device.minor;
}

Version first_isa_of(Arch target) noexcept {
  for (const PtxTargetRow& row : g_tables.targets)
    if (row.number == target.cc.number() && row.suffix == target.suffix) return row.isa;
  return {};
}

bool dropped_by(ComputeCapability cc, Version cuda) noexcept {
  const ComputeCapabilityInfo* info = find_compute_capability(cc);
  return info != nullptr && info->last_toolkit.known() && cuda > info->last_toolkit;
}

}  // namespace kshim::image
