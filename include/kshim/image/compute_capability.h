// SPDX-License-Identifier: Apache-2.0
// Tables of compute capabilities and CUDA versions, generated from knowledge/*.json at build time. Numbers
// that are in no row get the answer of the general rule. No heap.
#pragma once
#include <span>

#include "kshim/image/arch.h"

namespace kshim::image {

struct ComputeCapabilityInfo {
  ComputeCapability cc;
  const char* generation;  ///< Ampere, Ada Lovelace, Blackwell ...
  const char* chips;       ///< separated by spaces; empty where unknown
  bool tegra;              ///< the integrated GPU of a Jetson or Drive, to which rule C2 applies
  Version first_toolkit;
  Version last_toolkit;  ///< unknown = made to this day
};
/// An `f` image for SM number `image` runs on SM number `device`.
struct FamilyRow {
  unsigned image;
  unsigned device;
};
/// Oldest `.version` with which `.target sm_<number><suffix>` is valid PTX.
struct PtxTargetRow {
  unsigned number;
  Suffix suffix;
  Version isa;
};
/// Newest PTX ISA that a toolkit emits and a driver of this CUDA version reads. Ascending.
struct PtxIsaRow {
  Version cuda;
  Version isa;
};
struct CompatTables {
  std::span<const ComputeCapabilityInfo> gpus;
  std::span<const FamilyRow> families;
  std::span<const PtxTargetRow> targets;
  std::span<const PtxIsaRow> isas;
};
/// The tables in use; by default the built-in ones.
const CompatTables& compat_tables() noexcept;
/// Replaces the built-in tables, which must outlive all look-ups. For the command, before it starts threads.
void use_compat_tables(const CompatTables& tables) noexcept;

/// nullptr if no row has this compute capability.
const ComputeCapabilityInfo* find_compute_capability(ComputeCapability cc) noexcept;

bool is_tegra(ComputeCapability cc) noexcept;
/// Does an `f` image run on this device? Families that no row names are taken to be their major, upwards.
bool in_family(ComputeCapability image, ComputeCapability device) noexcept;
/// Oldest PTX ISA that knows this target; {0,0} where no row names it.
Version first_isa_of(Arch target) noexcept;
/// Can the toolkit of this CUDA version no longer make targets for this compute capability?
bool dropped_by(ComputeCapability cc, Version cuda) noexcept;

}  // namespace kshim::image
