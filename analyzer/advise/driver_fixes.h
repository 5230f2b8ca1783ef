// SPDX-License-Identifier: Apache-2.0
// A driver update where it helps, and never past the last branch that drives the GPU.
#pragma once
#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge.h"

namespace kshim::analysis {

/// The newest toolkit whose PTX the driver's compiler reads; nullptr where that is not known.
const ToolkitRow* toolkit_that_driver_reads(const AdviceInput& at);
/// 222: PTX that is newer than the driver.
void add_newer_ptx_fixes(const AdviceInput& at, Advice& advice);
/// 200: cubins or compression that the driver does not read.
void add_newer_driver_fixes(const AdviceInput& at, Advice& advice);
/// 35: a runtime that wants a newer driver.
void add_runtime_fixes(const AdviceInput& at, Advice& advice);

}  // namespace kshim::analysis
