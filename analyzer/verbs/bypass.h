// SPDX-License-Identifier: Apache-2.0
// What the shim itself says it could not see.
#pragma once
#include <optional>

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

/// The process of a report in which files went past the shim; nullopt where none did.
std::optional<BlindProcess> blind_by_bypass(const Report& report);

}  // namespace kshim::analysis
