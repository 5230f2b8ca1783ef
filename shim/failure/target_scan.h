// SPDX-License-Identifier: Apache-2.0
// KSHIM_TARGET: a static runtime registers its fatbins out of sight, and loads each only when it is needed.
// So that a target's gaps do not depend on what a run happened to use, the fatbins of every mapped file are
// read.
#pragma once
#include <cstdint>

#include "failure/gaps.h"

namespace kshim::shim {

/// Lies in zeroed memory. Under the shim's lock.
class TargetScan {
 public:
  /// Gaps for the targets in the files mapped since the last call. Nothing without KSHIM_TARGET.
  void run(const Gaps::Scene& scene, Gaps& gaps) noexcept;

 private:
  std::uint32_t scanned_[kMaxIdentities];  ///< by identity: the number of the report
  std::uint32_t visited_report_;
  std::uint64_t visited_;  ///< `load` of the last object that was scanned for that report
};

}  // namespace kshim::shim
