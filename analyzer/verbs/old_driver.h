// SPDX-License-Identifier: Apache-2.0
// Targets that the driver named with --driver does not know, whatever the files hold.
#pragma once
#include <vector>

#include "analyzer/core/finding.h"
#include "kshim/image/arch.h"

namespace kshim::scan {

/// One error a compute capability that came after `driver`; none for an unknown driver.
std::vector<analysis::Finding> old_driver_findings(const std::vector<image::Arch>& targets,
                                                   image::Version driver);

}  // namespace kshim::scan
