// SPDX-License-Identifier: Apache-2.0
// What to do about CUDA libraries that do not belong into one process, or not to this GPU.
#pragma once
#include "analyzer/advise/advice.h"

namespace kshim::analysis {

void add_missing_library_advice(const MissingLibrary& missing, Advice& out);
/// AdviceInput::conflict is there.
void add_library_advice(const AdviceInput& at, Advice& out);

}  // namespace kshim::analysis
