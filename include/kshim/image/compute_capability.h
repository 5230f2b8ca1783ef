// SPDX-License-Identifier: Apache-2.0
// Look-ups into compute_capability.def. A number that no row knows gets the general rule's answer. No heap.
#pragma once
#include "kshim/image/arch.h"

namespace kshim::image {

struct ComputeCapabilityInfo {
  ComputeCapability cc;
  const char* generation;  ///< Ampere, Ada Lovelace, Blackwell ...
  const char* chips;       ///< separated by spaces; empty where unknown
  bool tegra;              ///< the integrated GPU of a Jetson or Drive
  Version first_toolkit;
  Version last_toolkit;  ///< unknown = made to this day
};
/// nullptr for a compute capability that no row names.
const ComputeCapabilityInfo* find_compute_capability(ComputeCapability cc) noexcept;

bool is_tegra(ComputeCapability cc) noexcept;
/// Does an `f` image run on this device? Families that no row names are taken to be their major, upwards.
bool in_family(ComputeCapability image, ComputeCapability device) noexcept;
/// Oldest PTX ISA that knows this target; {0,0} where no row names it.
Version first_isa_of(Arch target) noexcept;
/// Can the toolkit of this CUDA version no longer make targets for this compute capability?
bool dropped_by(ComputeCapability cc, Version cuda) noexcept;

}  // namespace kshim::image
