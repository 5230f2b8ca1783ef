// SPDX-License-Identifier: Apache-2.0
// Which rpm package a file belongs to, without librpm: the database that rpm 4.16 and later keep in SQLite.
// Berkeley DB and rpm's own ndb are recognised and not read.
#pragma once

#include "analyzer/owner/bounded.h"
#include "analyzer/owner/package.h"
#include "kshim/base/bytes.h"

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

// A header of the rpm database: a table of tags over a heap of values (rpm.org, "RPM V4 Package format",
// header structure; in the database without its magic number). No heap, no trust: every read is checked.

class RpmHeader {
 public:
  static std::optional<RpmHeader> open(Bytes blob);
  /// A tag of one text; empty where there is none.
  std::string text(std::uint32_t tag) const;
  /// The text at an index of a list of texts.
  std::optional<std::string_view> text_at(std::uint32_t tag, std::uint64_t index) const;
  std::optional<std::uint32_t> number_at(std::uint32_t tag, std::uint64_t index) const;
  /// The path of a file by its number.
  std::optional<std::string> file(std::uint64_t index) const;
  /// "1.2.3-4.el9", with the epoch in front where there is one, as `rpm -q` has it: "1:1.2.3-4".
  std::string version() const;

  static constexpr std::uint32_t kName = 1000;

 private:
  struct Entry {
    std::uint32_t type = 0;
    std::uint32_t offset = 0;
    std::uint32_t count = 0;
  };
  std::optional<Entry> find(std::uint32_t tag) const;
  Bytes table_;
  Bytes heap_;
};

}  // namespace kshim::packages
