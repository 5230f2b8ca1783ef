// SPDX-License-Identifier: Apache-2.0
// Where a result goes: a standard stream, or a file that is tried before the work, so that a wrong path costs
// nothing, and that appears at the end, whole: until then a file of that name keeps what it has, and whatever
// ends the work leaves no half or empty one. The file that GitHub's runner calls GITHUB_STEP_SUMMARY is added
// to: what a step's other commands have written there stays.
//
// No link is followed, and no device and no file of another user is written to, even if another process
// changes the folder meanwhile: the folder and the entry are opened once, judged by fstat, and used through
// their descriptors. Only the literal names /dev/stdout, /dev/stderr, /dev/fd/N and /dev/null stand for what
// is open already.
#pragma once
#include <sys/stat.h>

#include "analyzer/core/prelude.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {

class Output {
 public:
  /// Tries `path`, or stands for `stream` where it is empty. UserError with `status` where it cannot be
  /// written.
  Output(std::string path, int stream, int status);

  bool is_stream() const noexcept { return path_.empty(); }
  /// UserError where it is one of the files, by whatever name: `what` they are, as in "the reports to read".
  void refuse_inputs(const std::vector<std::string>& paths, std::string_view what) const;
  /// Whether it is the file at `path`, by whatever name.
  bool is_same_file(const std::string& path) const;
  /// The first bytes, `most` at most, of a file that was there before; empty where there was none.
  std::string first_bytes(std::size_t most) const;
  /// Replaces the file. UserError when the file, or a stdout that is open, does not take it.
  void write(std::string_view text);

 private:
  [[noreturn]] void refuse(std::string_view why) const;
  [[noreturn]] void fail(int error) const;
  void find();
  void find_present(int entry);
  void replace(std::string_view text) const;
  void write_to(int fd, std::string_view text) const;
  std::string path_;
  std::string name_;          ///< the last component of path_, in folder_
  files::Descriptor folder_;  ///< where a new file is made and then named name_
  bool present_ = false;      ///< there is a file to replace:
  struct stat there_ {};      ///< what it is
  files::Descriptor fd_;      ///< where it is open, it is written to
  int stream_;
  int status_;
};

}  // namespace kshim::cli
