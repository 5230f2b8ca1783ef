// SPDX-License-Identifier: Apache-2.0
// Which package a file of this machine belongs to: conda, pip, dpkg, rpm.
#pragma once

#include "analyzer/owner/databases.h"

namespace kshim::owner {

/// Databases are read when a path first asks for them, within one budget. Not for several threads at once.
class Finder {
 public:
  /// `root`: of the running system (/), or of another, whose package managers cannot be asked. Environments
  /// are found from the path of the file itself.
  explicit Finder(const std::filesystem::path& root = "/", LookupBudget budget = {});
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;
  /// nullopt for a file that no package lists, and for a path that is not absolute.
  const std::optional<Package>& of(const std::string& path);
  /// The same for a path of the root itself, as "usr/lib/libfoo.so", be the file there or not.
  std::optional<Package> in_root(const std::string& below);
  /// Folders of installed packages are found from the paths of files of a process, and where they say that a
  /// package is built of a folder elsewhere, files in that folder are its own.
  void note(const std::string& path);
  /// The same from a program at PREFIX/bin/NAME.
  void note_program(const std::string& path);
  /// What was noted so far does not count.
  void forget();

 private:
  std::optional<Package> listed(const std::string& path);
  std::optional<Package> system_owner(const std::string& path);
  std::string environment(const std::string& path);
  std::filesystem::path root_;
  LookupBudget budget_;
  CondaEnvironments conda_{budget_};
  PythonDistributions python_{budget_};
  DpkgQuery dpkg_;
  RpmQuery rpm_;
  std::map<std::string, std::optional<Package>> known_;
  std::map<std::string, std::optional<Package>> by_notes_;  ///< what depends on notes
};

}  // namespace kshim::owner
