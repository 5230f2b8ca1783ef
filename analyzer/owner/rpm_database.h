// SPDX-License-Identifier: Apache-2.0
// Which rpm package a file belongs to, without librpm: the database that rpm 4.16 and later keep in SQLite.
// Berkeley DB and rpm's own ndb are recognised and not read.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/owner/bounded.h"
#include "analyzer/owner/package.h"

namespace kshim::packages {

class RpmDatabase {
 public:
  RpmDatabase(std::filesystem::path root, Budget& budget);
  ~RpmDatabase();
  RpmDatabase(const RpmDatabase&) = delete;
  RpmDatabase& operator=(const RpmDatabase&) = delete;
  /// `names`: all that the file is called, as names_of() gives them.
  std::optional<Package> owner(const std::vector<std::string>& names);
  /// Why there is a database and no answer, as a clause: "is a Berkeley DB, which is not read"; else empty.
  const std::string& unreadable();

 private:
  struct Connection;
  void open();
  std::optional<Package> find(const std::string& path);
  std::filesystem::path root_;
  Budget& budget_;
  bool opened_ = false;
  std::string unreadable_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace kshim::packages
