// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include "analyzer/core/prelude.h"

namespace kshim::analysis {

struct ReportFile {
  std::string path;  ///< of a million reports a fs::path each would take half a gigabyte
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
  uid_t owner = 0;
};

/// By its first line.
bool is_report(const std::filesystem::path& path);
/// Whether it is a report, or a folder with some.
bool holds_reports(const std::filesystem::path& path);
/// Whether it is a link of another user, who would choose which file is read with the caller's rights.
bool is_another_users_link(const std::filesystem::path& path);
/// The files themselves, and every *.jsonl below the folders, each once, ordered by path. What is not there
/// or cannot be listed becomes a note.
std::vector<ReportFile> find_report_files(const std::vector<std::filesystem::path>& paths,
                                          std::vector<std::string>& notes);

}  // namespace kshim::analysis
