// SPDX-License-Identifier: Apache-2.0
// What the fix of one finding means for those of the others.
#pragma once
#include <vector>

#include "analyzer/diagnose/advice_input.h"

namespace kshim::analysis {

/// Takes away what contradicts the first fix of an earlier finding, or what that makes needless. The findings
/// are in the order in which they are shown, with their fixes and with what these depend on.
void settle(std::vector<Finding>& findings);

}  // namespace kshim::analysis
