// SPDX-License-Identifier: Apache-2.0
// Where the report goes: the pattern of KSHIM_REPORT, folders, and a name that is not in use.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <string_view>

#include "guest/options.h"
#include "guest/own_file.h"
#include "guest/text_buffer.h"
#include "report/environment.h"

namespace kshim::shim {

struct ReportFile {
  int fd = -1;  ///< high, close-on-exec, opened O_APPEND
  FileIdentity identity;
  PathText path;
  explicit operator bool() const noexcept { return fd >= 0; }
};

struct ProcessNames {
  std::string_view host;
  std::uint32_t pid = 0;
  std::uint64_t rank = 0;
};

/// Puts names in; `%h` never brings in a slash. Cut to fit.
PathText expand_pattern(std::string_view pattern, const ProcessNames& names) noexcept;
/// DIR/host.17.jsonl with number 2: DIR/host.17.2.jsonl; without an extension the number goes to the end.
PathText numbered(std::string_view path, unsigned number) noexcept;
/// Makes the folders and the first free one of path, path.1, path.2 ...: with the mode of the options, never
/// an existing file or a link. Answers errno, 0 when `out` is open, -1 when the folder has as many files as
/// it may.
int create_report(std::string_view path, const Options& options, ReportFile& out) noexcept;
/// Opens the report of this process: where the options say, else below TMPDIR. Says on stderr if it is in
/// another place than the options say, and if there is none.
bool open_report(const Options& options, const EnvironmentCopy& environment, const ProcessNames& names,
                 ReportFile& out) noexcept;
/// Writes a file of this name, readable for its user alone, into the folder of the report at `report`. True
/// also where the user has one of this name there; a link is none.
bool write_beside(std::string_view report, const char* name, Bytes content) noexcept;
/// What an errno means for a report; empty where it says nothing.
std::string_view reason_of(int error) noexcept;
/// Whether `file.fd` still is the file that was opened: the host may have closed the descriptor (closefrom)
/// and reused its number.
bool still_open(const ReportFile& file) noexcept;
/// Opens the file again after the host has closed the descriptor, if the path still leads to the same file.
bool reopen_report(ReportFile& file) noexcept;
/// `path` as a person in `folder` would write it.
std::string_view relative_to(std::string_view path, std::string_view folder) noexcept;

}  // namespace kshim::shim
