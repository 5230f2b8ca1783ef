// SPDX-License-Identifier: Apache-2.0
// Reads a report line by line. A report comes from a process that may have died while writing, or from a
// stranger: nothing in it can make the reader fail in another way than by saying what is wrong.
//
// Memory: what is kept of one report (limits.h), one line, and simdjson's work on that line (about 14 bytes
// for each of the longest), whatever the size of the file.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <variant>

#include "analyzer/input/report/report.h"

namespace kshim::analysis {

/// A longer line is skipped with a note: no record of the shim is longer than 512 KiB.
constexpr std::size_t kLongestLine = std::size_t{4} << 20;

/// Of a report written with KSHIM_PRIVATE: its owner's analysis has the home folder, what is made to be kept
/// or shared has `~`.
enum class Homes : bool { own, hidden };

/// The report, or one sentence without the path saying why it is none. `read` is told the bytes read so far,
/// now and then.
std::variant<Report, std::string> read_report(const std::filesystem::path& path,
                                              const std::function<void(std::uint64_t bytes)>& read = {},
                                              Homes homes = Homes::own);

/// "r.jsonl:7"; the path alone, where the note is about the whole.
std::string place_of(const Report& report, const ReportNote& note);

}  // namespace kshim::analysis
