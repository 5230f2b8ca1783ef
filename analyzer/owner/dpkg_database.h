// SPDX-License-Identifier: Apache-2.0
// Which Debian package a file belongs to, without running dpkg: /var/lib/dpkg/info/*.list and status
// (deb-src:dpkg, doc/ and dpkg(1), FILES). Read once, at the first question.
#pragma once
#include <map>

#include "analyzer/owner/bounded.h"
#include "analyzer/owner/package.h"

namespace kshim::packages {

class DpkgDatabase {
 public:
  DpkgDatabase(std::filesystem::path root, Budget& budget) : root_(std::move(root)), budget_(budget) {}
  /// `names`: all that the file is called, as names_of() gives them.
  std::optional<Package> owner(const std::vector<std::string>& names);

 private:
  void load();
  void load_lists();
  void load_status();
  std::string version_of(const std::string& list_name) const;

  std::filesystem::path root_;
  Budget& budget_;
  bool loaded_ = false;
  std::vector<std::string> lists_;  ///< "libc6:amd64"
  PathIndex files_;
  std::map<std::string, std::string, std::less<>> versions_;  ///< by "libc6:amd64" and by "libc6"
};

}  // namespace kshim::packages
