// SPDX-License-Identifier: Apache-2.0
// The driver's error log (CUDA 12.9): why a call failed, in words. Each exported function reports its failure
// once, with what was explained on the same thread meanwhile. Which words and forms are documented, reported
// or assumed: docs/internals/simulator.md, "Error log".
#pragma once
#include <string>

#include "base/driver_api.h"

namespace kshim::sim {

/// Why the call that runs on this thread is going to fail. Returns `result`.
CUresult explain(CUresult result, std::string message);
/// 209 and its relatives of an image: the compiler's message, else the GPU's ISA.
CUresult explain_image(CUresult result, int isa, const std::string& message);

/// `call`, the exported name, returns `result`.
void log_failure(const char* call, CUresult result) noexcept;

}  // namespace kshim::sim
