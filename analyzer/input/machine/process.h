// SPDX-License-Identifier: Apache-2.0
// A running process as /proc shows it: files that it has mapped, its root, the environment that it started
// with. Nothing is preloaded into it, and it is not traced.
#pragma once

#include "analyzer/input/files/walk.h"
#include "analyzer/input/machine/facts.h"

namespace kshim::input {

class LiveProcess {
 public:
  /// `pid` as the user wrote it. UserError, in one line, if it is not a number, or if the process is gone or
  /// not for this user to read.
  explicit LiveProcess(std::string_view pid);

  const RunningProcess& facts() const noexcept { return facts_; }
  /// The files and the environment that the process sees. They stay readable when it ends.
  const Machine& machine() const noexcept { return *machine_; }
  /// Where its root can be opened from here: "/" where it is ours.
  const std::filesystem::path& root() const noexcept { return root_; }
  /// The mapped files of kinds that hold device code, each by the name that the process has for it; a note
  /// for a library that is no longer there.
  Inputs code_files() const;

 private:
  struct Mapping {
    std::string path;   ///< as the process sees it
    std::string range;  ///< "7f00c000-7f00d000", the first
    bool deleted = false;
  };
  std::string read(const char* name) const;
  [[noreturn]] void refuse(int error) const;
  void read_maps();
  void open_root();

  RunningProcess facts_;
  files::Descriptor folder_;  ///< /proc/PID: of this process alone, whatever gets its number later
  files::Descriptor root_folder_;
  std::filesystem::path root_ = "/";
  std::string root_name_;  ///< the root as our own paths call it, without the last slash
  std::vector<Mapping> mappings_;
  std::optional<Machine> machine_;
};

}  // namespace kshim::input
