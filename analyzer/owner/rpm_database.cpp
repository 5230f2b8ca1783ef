// SPDX-License-Identifier: Apache-2.0
// The tables are those of rpm's lib/backend/sqlite.c: Packages (hnum, blob), and for each index a table of
// key, hnum and idx; in Basenames the key is a file's name without its folder, and idx its number in the
// header.
#include "analyzer/owner/rpm_database.h"

#include <system_error>

#include "analyzer/core/text.h"
#include "analyzer/owner/rpm_header.h"

#if KSHIM_HAS_SQLITE
#include <sqlite3.h>
#endif

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

// Fedora and RHEL 9 keep the database in /usr, the others in /var.
constexpr std::string_view kFolders[] = {"usr/lib/sysimage/rpm", "var/lib/rpm"};
[[maybe_unused]] constexpr std::uint64_t kLargestDatabase = std::uint64_t{4} << 30;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

#if KSHIM_HAS_SQLITE
struct RpmDatabase::Connection {
  sqlite3* database = nullptr;
  sqlite3_stmt* files = nullptr;
  sqlite3_stmt* header = nullptr;
  std::uint64_t steps = 0;

  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    sqlite3_finalize(files);
    sqlite3_finalize(header);
    sqlite3_close(database);
  }

  // A damaged or made-up file may keep SQLite busy for ever: it is stopped after so many of its own steps.
  static int count_steps(void* self) {
    constexpr std::uint64_t kMostSteps = 20'000;  // of kStepsACall each
    return ++static_cast<Connection*>(self)->steps > kMostSteps ? 1 : 0;
  }

  bool open(const fs::path& file) {
    constexpr int kLargestValue = 64 << 20;
    constexpr int kStepsACall = 1000;
    // Immutable: nothing is locked or written beside the database, which belongs to root. What still stands
    // in its write-ahead log alone is not seen then.
    std::string uri = "file:";
    for (const char c : file.string()) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      if (c == '%' || c == '?' || c == '#') {
        uri += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
      } else {
        uri += c;
      }
    }
    uri += "?immutable=1";
    if (sqlite3_open_v2(uri.c_str(), &database,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE,
                        nullptr) != SQLITE_OK)
      return false;
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLargestValue);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_progress_handler(database, kStepsACall, count_steps, this);
    return prepare("SELECT hnum, idx FROM Basenames WHERE key = ? LIMIT 1000", files) &&
           prepare("SELECT blob FROM Packages WHERE hnum = ?", header);
  }

  bool prepare(const char* text, sqlite3_stmt*& statement) const {
    return sqlite3_prepare_v2(database, text, -1, &statement, nullptr) == SQLITE_OK;
  }

  /// The package whose header says that its file `index` is `path`.
  std::optional<Package> check(sqlite3_int64 number, std::uint64_t index, const std::string& path,
                               Budget& budget) {
    std::optional<Package> out;
    sqlite3_reset(header);
    sqlite3_bind_int64(header, 1, number);
    if (sqlite3_step(header) == SQLITE_ROW && sqlite3_column_type(header, 0) == SQLITE_BLOB) {
      const void* data = sqlite3_column_blob(header, 0);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(header, 0));
      if (data != nullptr && size <= budget.bytes) {
        budget.bytes -= size;
        const auto read = RpmHeader::open(Bytes(static_cast<const std::byte*>(data), size));
        if (read && read->file(index) == path) {
          out.emplace();
          out->name = read->text(RpmHeader::kName);
          out->version = read->version();
          out->manager = "rpm";
          if (out->name.empty()) out.reset();
        }
      }
    }
    sqlite3_reset(header);
    return out;
  }

  std::optional<Package> find(const std::string& path, Budget& budget) {
    const std::string_view name = analysis::basename_of(path);
    sqlite3_reset(files);
    sqlite3_bind_text(files, 1, name.data(), static_cast<int>(name.size()), SQLITE_TRANSIENT);
    std::optional<Package> out;
    while (!out && sqlite3_step(files) == SQLITE_ROW) {
      const sqlite3_int64 index = sqlite3_column_int64(files, 1);
      if (index >= 0)
        out = check(sqlite3_column_int64(files, 0), static_cast<std::uint64_t>(index), path, budget);
    }
    sqlite3_reset(files);
    return out;
  }
};
#else
struct RpmDatabase::Connection {};
#endif

RpmDatabase::RpmDatabase(fs::path root, Budget& budget) : root_(std::move(root)), budget_(budget) {}
RpmDatabase::~RpmDatabase() = default;

void RpmDatabase::open() {
  if (opened_) return;
  opened_ = true;
  for (const std::string_view name : kFolders) {
    const fs::path folder = root_ / name;
    if (is_file(folder / "rpmdb.sqlite")) {
#if KSHIM_HAS_SQLITE
      std::error_code error;
      auto connection = std::make_unique<Connection>();
      const std::uint64_t size = fs::file_size(folder / "rpmdb.sqlite", error);
      if (!error && size <= kLargestDatabase && connection->open(folder / "rpmdb.sqlite")) {
        connection_ = std::move(connection);
        unreadable_.clear();
        return;
      }
      unreadable_ = "cannot be read as SQLite";
#else
      unreadable_ = "is in SQLite, which this build of kshim does not read";
#endif
    } else if (is_file(folder / "Packages.db")) {
      unreadable_ = "is of the kind ndb, which is not read";
    } else if (is_file(folder / "Packages")) {
      unreadable_ = "is a Berkeley DB, which is not read";
    }
  }
}

const std::string& RpmDatabase::unreadable() {
  open();
  return unreadable_;
}

std::optional<Package> RpmDatabase::owner(const std::vector<std::string>& names) {
  open();
  for (const std::string& path : names) {
    if (auto out = find(path)) return out;
  }
  return std::nullopt;
}

std::optional<Package> RpmDatabase::find([[maybe_unused]] const std::string& path) {
#if KSHIM_HAS_SQLITE
  if (connection_) return connection_->find(path, budget_);
#endif
  return std::nullopt;
}

}  // namespace kshim::packages
