// SPDX-License-Identifier: Apache-2.0
// The files of one export: DIR/table=NAME/date=DAY/EXPORT[.N].ndjson[.zst]. Rows are collected under another
// name and renamed at the end, so that a reader never sees half a file and a failed export leaves none. No
// link of another user is followed, and what is written to, removed or renamed is in the folder that was
// opened.
#pragma once

#include "analyzer/export/row.h"

namespace kshim::exports {

inline const std::string kNoDay = "unknown";

class TableFiles {
 public:
  /// Throws UserError, as all members do, where the folder cannot be written.
  TableFiles(std::filesystem::path folder, bool zstd);
  ~TableFiles();
  TableFiles(const TableFiles&) = delete;
  TableFiles& operator=(const TableFiles&) = delete;

  /// Lines of so many rows. `wanted`: "2026-11-22". Once an export has many days, others have kNoDay: each is
  /// a folder in every table.
  void add(Table table, const std::string& wanted, std::string_view lines, std::uint64_t rows);
  /// A file of DIR/manifest, which gets its name after all tables.
  void add_manifest(const std::string& ending, std::string_view bytes);
  /// Writes what is left and gives the files their names, which begin with `name`. Without it the destructor
  /// removes them.
  void finish(const std::string& name);
  const std::map<std::string_view, std::uint64_t>& rows() const noexcept { return rows_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct File {
    std::vector<std::string_view> pending;  ///< in the buffer
    std::size_t number = kNone;             ///< in written_
    std::uint64_t bytes = 0;                ///< of rows, before compression
    unsigned part = 0;
  };
  using Key = std::pair<Table, std::string>;
  void write(const Key& key, File& file, std::string_view lines);
  void flush();
  std::filesystem::path folder_;
  std::string name_;  ///< until finish(): of no other export into the folder
  bool zstd_;
  std::map<Key, File> files_;
  std::set<std::string> days_;
  struct Written {
    std::filesystem::path folder;
    std::string ending;
  };
  std::string temporary(const Written& file) const;
  std::vector<Written> written_, manifests_;
  std::map<std::string_view, std::uint64_t> rows_;
  std::string buffer_;  ///< of all tables; never moves
  bool finished_ = false;
};

}  // namespace kshim::exports
