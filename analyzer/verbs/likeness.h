// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "analyzer/input/report/report.h"

namespace kshim::analysis {

/// What a report is judged by, as bytes: reports with the same bytes are judged the same, but for the program
/// that a fix names. That is all but when, where and in which job the process ran. Empty where the process
/// itself is judged: compilers, and processes that went past the shim.
std::string likeness_of(const Report& report);
/// The program.
std::string program_likeness_of(const ProcessRecord& process);

}  // namespace kshim::analysis
