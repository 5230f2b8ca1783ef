// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyzer/advise/advice.h"

namespace kshim::analysis {

/// Rebuilding the file with code for the device: with the toolkit that built it where that can, else with the
/// one that can.
void add_rebuild_fixes(const AdviceInput& at, std::vector<Fix>& fixes);
/// Rebuilding a package that was compiled against PyTorch, where it is not known which.
void add_extension_rebuild(const AdviceInput& at, std::vector<Fix>& fixes);
/// Rebuilding the file with a toolkit whose cubins the driver reads.
void add_rebuild_for_driver(const AdviceInput& at, std::vector<Fix>& fixes);

}  // namespace kshim::analysis
