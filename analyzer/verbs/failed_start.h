// SPDX-License-Identifier: Apache-2.0
// Programs that left no report: what the dynamic linker ended before its first instruction (exit status 127),
// and what found no driver.
#pragma once

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::verbs {

/// The libraries that the linker does not find for `program`, or for what that is linked to. `search_path`:
/// LD_LIBRARY_PATH as the program had it.
std::vector<diagnose::MissingLibrary> missing_at_start(const std::filesystem::path& program,
                                                       std::string_view search_path);

/// Whether the program has device code and this machine no libcuda.so.1: what fails then fails for want of
/// the driver, as in a container that was started without its GPU.
bool lacks_driver(const std::filesystem::path& program, std::string_view search_path);

// What the shim itself says it could not see.

/// The process of a report in which files went past the shim; nullopt where none did.
std::optional<diagnose::BlindProcess> blind_by_bypass(const input::Report& report);

}  // namespace kshim::verbs
