// SPDX-License-Identifier: Apache-2.0
// The tables are those of rpm's lib/backend/sqlite.c: Packages (hnum, blob), and for each index a table of
// key, hnum and idx; in Basenames the key is a file's name without its folder, and idx its number in the
// header.
#include <sqlite3.h>

#include "analyzer/core/text.h"
#include "analyzer/owner/databases.h"

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

// Fedora and RHEL 9 keep the database in /usr, the others in /var.
constexpr std::string_view kFolders[] = {"usr/lib/sysimage/rpm", "var/lib/rpm"};
constexpr std::uint64_t kLargestDatabase = std::uint64_t{4} << 30;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

constexpr std::size_t kEntrySize = 16;
// rpm's own limits (lib/header.c): more is damage.
constexpr std::uint32_t kMostEntries = 0xffff;
constexpr std::uint32_t kLargestHeap = 0x0fffffff;
// Tags and types (rpm.org, "RPM Tags"; lib/rpmtag.h).
constexpr std::uint32_t kVersion = 1001;
constexpr std::uint32_t kRelease = 1002;
constexpr std::uint32_t kEpoch = 1003;
constexpr std::uint32_t kOldFileNames = 1027;
constexpr std::uint32_t kDirIndexes = 1116;
constexpr std::uint32_t kBaseNames = 1117;
constexpr std::uint32_t kDirNames = 1118;
constexpr std::uint32_t kInt32 = 4;
constexpr std::uint32_t kString = 6;
constexpr std::uint32_t kStringArray = 8;
constexpr std::uint32_t kI18nString = 9;

// Numbers are big-endian.
std::uint32_t number(Bytes bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return out;
}

/// The text up to the next NUL, which must be there.
std::optional<std::string_view> text_in(Bytes heap, std::uint64_t offset) {
  if (offset >= heap.size()) return std::nullopt;
  const std::string_view rest = text_of(heap).substr(static_cast<std::size_t>(offset));
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

}  // namespace

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
    const std::string_view name = basename_of(path);
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

RpmDatabase::RpmDatabase(fs::path root, Budget& budget) : root_(std::move(root)), budget_(budget) {}
RpmDatabase::~RpmDatabase() = default;

void RpmDatabase::open() {
  if (opened_) return;
  opened_ = true;
  for (const std::string_view name : kFolders) {
    const fs::path folder = root_ / name;
    if (is_file(folder / "rpmdb.sqlite")) {
      std::error_code error;
      auto connection = std::make_unique<Connection>();
      const std::uint64_t size = fs::file_size(folder / "rpmdb.sqlite", error);
      if (!error && size <= kLargestDatabase && connection->open(folder / "rpmdb.sqlite")) {
        connection_ = std::move(connection);
        unreadable_.clear();
        return;
      }
      unreadable_ = "cannot be read as SQLite";
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

std::optional<Package> RpmDatabase::find(const std::string& path) {
  return connection_ ? connection_->find(path, budget_) : std::nullopt;
}

std::optional<RpmHeader> RpmHeader::open(Bytes blob) {
  constexpr std::size_t kCounts = 8;
  if (blob.size() < kCounts) return std::nullopt;
  const std::uint32_t entries = number(blob, 0);
  const std::uint32_t heap = number(blob, 4);
  if (entries == 0 || entries > kMostEntries || heap > kLargestHeap) return std::nullopt;
  const std::uint64_t table = std::uint64_t{entries} * kEntrySize;
  if (blob.size() - kCounts < table || blob.size() - kCounts - table < heap) return std::nullopt;
  RpmHeader out;
  out.table_ = blob.subspan(kCounts, static_cast<std::size_t>(table));
  out.heap_ = blob.subspan(kCounts + static_cast<std::size_t>(table), heap);
  return out;
}

std::optional<RpmHeader::Entry> RpmHeader::find(std::uint32_t tag) const {
  for (std::size_t at = 0; at + kEntrySize <= table_.size(); at += kEntrySize) {
    if (number(table_, at) == tag)
      return Entry{number(table_, at + 4), number(table_, at + 8), number(table_, at + 12)};
  }
  return std::nullopt;
}

std::string RpmHeader::text(std::uint32_t tag) const {
  const auto entry = find(tag);
  if (!entry || (entry->type != kString && entry->type != kI18nString)) return {};
  return std::string(text_in(heap_, entry->offset).value_or(std::string_view()));
}

std::optional<std::string_view> RpmHeader::text_at(std::uint32_t tag, std::uint64_t index) const {
  const auto entry = find(tag);
  if (!entry || entry->type != kStringArray || index >= entry->count) return std::nullopt;
  std::uint64_t offset = entry->offset;
  for (std::uint64_t i = 0;; ++i) {
    const auto text = text_in(heap_, offset);
    if (!text || i == index) return text;
    offset += text->size() + 1;
  }
}

std::optional<std::uint32_t> RpmHeader::number_at(std::uint32_t tag, std::uint64_t index) const {
  const auto entry = find(tag);
  if (!entry || entry->type != kInt32 || index >= entry->count) return std::nullopt;
  const std::uint64_t offset = entry->offset + index * 4;
  if (offset + 4 > heap_.size()) return std::nullopt;
  return number(heap_, static_cast<std::size_t>(offset));
}

std::optional<std::string> RpmHeader::file(std::uint64_t index) const {
  if (const auto old = text_at(kOldFileNames, index)) return std::string(*old);
  const auto name = text_at(kBaseNames, index);
  const auto folder = number_at(kDirIndexes, index);
  if (!name || !folder) return std::nullopt;
  const auto path = text_at(kDirNames, *folder);
  if (!path) return std::nullopt;
  return std::string(*path) + std::string(*name);
}

std::string RpmHeader::version() const {
  std::string out = text(kVersion);
  if (out.empty()) return out;
  if (const auto epoch = number_at(kEpoch, 0); epoch && *epoch != 0) out = std::to_string(*epoch) + ":" + out;
  if (const std::string release = text(kRelease); !release.empty()) out += "-" + release;
  return out;
}

}  // namespace kshim::packages
