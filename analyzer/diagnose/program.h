// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/input/report/report.h"

namespace kshim::diagnose {

/// Stands for the program in our commands.
constexpr std::string_view kProgramWord = "PROGRAM";

/// A command line for the shell, or nothing where it is too long to be read, or cannot be typed.
std::string command_line(const std::vector<std::string>& arguments);

/// That of a process, or nothing where another program starts such processes: typed by itself, it would wait
/// for a launcher, or end at once.
std::string command_line_of(const input::ProcessRecord& process);

}  // namespace kshim::diagnose
