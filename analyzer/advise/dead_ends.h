// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/advise/advice.h"
#include "analyzer/data/reach.h"

namespace kshim::analysis {

/// What people try in this situation although it cannot help, with why not.
void add_dead_ends(const AdviceInput& at, Serving serving, Advice& advice);

}  // namespace kshim::analysis
