// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

/// The analysis with every string harmless() or, without `unicode`, ascii().
Analysis cleaned(Analysis analysis, bool unicode);

}  // namespace kshim::analysis
