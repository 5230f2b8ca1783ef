// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/compute_capability.h"

namespace kshim::image {
namespace {

constexpr ComputeCapabilityInfo kKnown[] = {
#define KSHIM_CC(major, minor, generation, chips, tegra, first_toolkit, last_toolkit) \
  {{major, minor},                                                                    \
   generation,                                                                        \
   chips,                                                                             \
   tegra,                                                                             \
   Version::from_cuda_number(first_toolkit),                                          \
   Version::from_cuda_number(last_toolkit)},
#include "kshim/image/compute_capability.def"
};

struct FamilyRow {
  unsigned image;
  unsigned device;
};
constexpr FamilyRow kFamilies[] = {
#define KSHIM_FAMILY(image, device, docs) {image, device},
#include "kshim/image/compute_capability.def"
};

struct TargetRow {
  unsigned number;
  Suffix suffix;
  Version isa;
};
constexpr TargetRow kTargets[] = {
#define KSHIM_PTX_TARGET(number, suffix, isa_major, isa_minor) \
  {number, Suffix::suffix, {isa_major, isa_minor}},
#include "kshim/image/compute_capability.def"
};

}  // namespace

const ComputeCapabilityInfo* find_compute_capability(ComputeCapability cc) noexcept {
  for (const ComputeCapabilityInfo& info : kKnown)
    if (info.cc == cc) return &info;
  return nullptr;
}

bool is_tegra(ComputeCapability cc) noexcept {
  const ComputeCapabilityInfo* info = find_compute_capability(cc);
  return info != nullptr && info->tegra;
}

bool in_family(ComputeCapability image, ComputeCapability device) noexcept {
  bool known = false;
  for (const FamilyRow& row : kFamilies) {
    if (row.image != image.number()) continue;
    if (row.device == device.number()) return true;
    known = true;
  }
  // Of a family that has rows, devices younger than the rows still belong to it: minors only ever joined
  // upwards.
  if (known && find_compute_capability(device) != nullptr) return false;
  return image.major == device.major && image.minor <= device.minor;
}

Version first_isa_of(Arch target) noexcept {
  for (const TargetRow& row : kTargets)
    if (row.number == target.cc.number() && row.suffix == target.suffix) return row.isa;
  return {};
}

bool dropped_by(ComputeCapability cc, Version cuda) noexcept {
  const ComputeCapabilityInfo* info = find_compute_capability(cc);
  return info != nullptr && info->last_toolkit.known() && cuda > info->last_toolkit;
}

}  // namespace kshim::image
