// SPDX-License-Identifier: Apache-2.0
// Reads a report line by line. A report comes from a process that may have died while writing, or from a
// stranger: nothing in it can make the reader fail in another way than by saying what is wrong.
#pragma once
#include <filesystem>
#include <string>
#include <variant>

#include "analyzer/reader/report.h"

namespace kshim::analysis {

/// A longer line is skipped with a note: no record of the shim comes near it.
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

/// The report, or one sentence without the path saying why it is none.
std::variant<Report, std::string> read_report(const std::filesystem::path& path);

}  // namespace kshim::analysis
