// SPDX-License-Identifier: Apache-2.0
// The rule for compiler libraries: NVRTC or nvJitLink does not know an architecture yet, or no longer.
#pragma once
#include <optional>

#include "analyzer/diagnose/rules.h"

namespace kshim::analysis {

std::optional<Match> nvrtc_arch_unsupported(const Facts& facts);

}  // namespace kshim::analysis
