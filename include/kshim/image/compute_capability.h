// SPDX-License-Identifier: Apache-2.0
// What is known about compute capabilities and CUDA versions, and look-ups in it. The tables are made of
// knowledge/*.json when kshim is built. A number that no row knows gets the general rule's answer. No heap.
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
/// Those in use: at first the ones that were built in.
const CompatTables& compat_tables() noexcept;
/// For the command, before it has threads: newer tables than the built-in ones. They must stay.
void use_compat_tables(const CompatTables& tables) noexcept;

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
