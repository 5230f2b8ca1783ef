// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyzer/advise/advice.h"

namespace kshim::analysis {

/// Building the release of a project that still goes with a toolkit that has the GPU. False where the tables
/// know of none.
bool add_source_build(const AdviceInput& at, std::vector<Fix>& fixes);

/// The CUDA that the source asks for at least, where the GPU was dropped before that; unknown otherwise.
image::Version source_asks_beyond(const AdviceInput& at);

}  // namespace kshim::analysis
