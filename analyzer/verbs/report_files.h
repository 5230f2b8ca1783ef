// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include "analyzer/core/text.h"

namespace kshim::verbs {

struct ReportFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;  ///< as its owner says
  std::int64_t arrived_s = 0;   ///< as the file system says: a copy, too, has arrived
  uid_t owner = 0;
};

/// The first line of a file that begins as a JSON object, as far as it lies in the first bytes; else empty.
std::string json_start(const std::filesystem::path& path);
/// By its first line.
bool is_report(const std::filesystem::path& path);
/// Whether it is a report, or a folder with some.
bool holds_reports(const std::filesystem::path& path);

/// The files themselves, and every *.jsonl below the folders, each once, ordered by path within each of the
/// paths. Memory: the names in the folder at hand and in those above it.
class ReportWalk {
 public:
  /// What is not there or cannot be listed becomes a note.
  ReportWalk(const std::vector<std::filesystem::path>& paths, std::vector<std::string>& notes);
  std::optional<ReportFile> next();

 private:
  struct Folder;
  std::optional<ReportFile> begin(const std::string& path);
  void open(std::string path);
  std::vector<std::string> paths_;
  std::vector<std::string>& notes_;
  std::size_t begun_ = 0;
  std::vector<std::shared_ptr<Folder>> open_;  ///< from the path at hand down
  std::size_t notes_before_ = 0;
  bool found_ = false, deeper_ = false;  ///< below the path at hand
};
/// All of them.
std::vector<ReportFile> find_report_files(const std::vector<std::filesystem::path>& paths,
                                          std::vector<std::string>& notes);

}  // namespace kshim::verbs
