// SPDX-License-Identifier: Apache-2.0
// What a scan says about one object and one target.
#pragma once
#include <vector>

#include "analyzer/core/finding.h"
#include "analyzer/diagnose/file_coverage.h"
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

struct ObjectFacts {
  ScannedObject& object;  ///< TargetVerdict::picks is set
  const analysis::DeviceCode& code;
  const analysis::FileCoverage& coverage;
  const Owner& owner;
  const analysis::KernelTable* kernels = nullptr;  ///< with --kernels
  bool shared_library = false;
};

/// One finding a target at most, and one for damage.
std::vector<analysis::Finding> findings_of(ObjectFacts facts, image::Version driver);

}  // namespace kshim::scan
