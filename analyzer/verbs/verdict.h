// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

/// The one word for the whole, from findings, processes and blind ones. What failed outweighs what was not
/// seen.
Verdict verdict_of(const Analysis& analysis);

}  // namespace kshim::analysis
