// SPDX-License-Identifier: Apache-2.0
// A program that the dynamic linker ended before its first instruction (exit status 127): what it lacked.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/verbs/analysis.h"

namespace kshim::doctor {

/// The libraries that the linker does not find for `program`, or for what that is linked to. `search_path`:
/// LD_LIBRARY_PATH as the program had it.
std::vector<analysis::MissingLibrary> missing_at_start(const std::filesystem::path& program,
                                                       std::string_view search_path);

}  // namespace kshim::doctor
