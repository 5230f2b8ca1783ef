// SPDX-License-Identifier: Apache-2.0
// Where the reports of one run go, and how they are told from those of other runs.
#pragma once

#include <sys/un.h>

#include "analyzer/core/prelude.h"
#include "kshim/files/open_file.h"

namespace kshim::run {

class RunFolder {
 public:
  /// `wanted` is --report; empty: kshim-report/<run id> in the working directory, or in a folder of one's own
  /// in TMPDIR where that cannot be written, or where others may have laid it. Throws UserError when `wanted`
  /// cannot be written, or nothing can.
  explicit RunFolder(const std::filesystem::path& wanted);
  /// Removes the folders that were made here, as far as they stayed empty.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& run_id() const noexcept { return run_id_; }
  const std::filesystem::path& path() const noexcept { return path_; }  ///< as short as it was given
  /// Why it is not where it would be looked for; empty where it is.
  const std::string& remark() const noexcept { return remark_; }
  /// The value of KSHIM_REPORT.
  std::string pattern() const;
  /// The reports of this run and no others, sorted.
  std::vector<std::filesystem::path> reports() const;

 private:
  bool create(const std::filesystem::path& path);

  std::string run_id_;
  std::filesystem::path path_;
  std::string remark_;
  std::vector<std::filesystem::path> made_;  ///< outermost first
};

/// What a killed `kshim run` could not remove, the next one does. The caller's own kshim-run-* in `folder` at
/// whose sockets nobody listens any more.
void remove_dead_sockets(const std::filesystem::path& folder);

/// The empty folders in `folder` of runs that have ended: a run's name ends in the process that made it.
void remove_empty_runs(const std::filesystem::path& folder);

/// A connection to the socket; not open where there is none, as errno says.
files::Descriptor connect_to(const std::string& path);
/// Its address; nullopt where the path is too long for one.
std::optional<sockaddr_un> socket_address(const std::string& path);

/// Twelve hexadecimal digits, which only a process that is told them knows; empty where the system has
/// nothing random.
std::string random_token();

}  // namespace kshim::run
