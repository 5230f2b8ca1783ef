// SPDX-License-Identifier: Apache-2.0
// KSHIM_TARGET: the shim cannot see what a static runtime registers, and the runtime loads a fatbin only when
// it is needed. To find all gaps of a target, the fatbins of every loaded file are read.
#pragma once
#include <cstdint>

#include "failure/gaps.h"

namespace kshim::shim {

/// Lies in zeroed memory.
class TargetScan {
 public:
  /// Gaps for the targets in the files mapped since the last call. Nothing without KSHIM_TARGET.
  void run(const Gaps::Scene& scene, Gaps& gaps) noexcept;

 private:
  std::uint32_t scanned_[kMaxIdentities];  ///< by identity: the number of the report
  std::uint32_t visited_report_;
  std::uint64_t visited_;  ///< `mapping_id` of the last object that was scanned for that report
};

}  // namespace kshim::shim
