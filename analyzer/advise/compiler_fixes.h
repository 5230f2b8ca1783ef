// SPDX-License-Identifier: Apache-2.0
// What to do when NVRTC or nvJitLink does not compile for a GPU.
#pragma once
#include "analyzer/advise/advice.h"

namespace kshim::analysis {

void add_compiler_fixes(const AdviceInput& at, Advice& advice);

}  // namespace kshim::analysis
