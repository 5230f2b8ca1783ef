// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/table_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <random>

#include "analyzer/core/user_error.h"
#include "kshim/report/libc_calls.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::exports {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBuffer = std::size_t{8} << 20;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

[[noreturn]] void fail(const fs::path& path, int error) {
  throw UserError(fmt::format("{}: {}", path.string(),
                              error == ELOOP ? "a link on the way belongs to another user"
                                             : std::generic_category().message(error)),
                  exit_status::kMisuse);
}

/// Opens a folder, and makes what is missing. 0 or errno.
int open_folder(const fs::path& folder, files::Descriptor& out) {
  int fd = -1;
  const int error =
      report::FolderWalk<report::LibcCalls>::open(folder.native(), {.make_missing = true, .mode = 0777}, fd);
  if (error == 0) out = files::Descriptor(fd);
  return error;
}

files::Descriptor opened(const fs::path& folder) {
  files::Descriptor out;
  if (const int error = open_folder(folder, out); error != 0) fail(folder, error);
  return out;
}

std::string compressed(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

void append(const fs::path& folder, const std::string& name, std::string_view bytes, bool fresh) {
  const files::Descriptor within = opened(folder);
  const int flags =
      O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | (fresh ? O_CREAT | O_EXCL : 0);
  const files::Descriptor file(::openat(within.get(), name.c_str(), flags, 0600));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) fail(folder / name, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) fail(folder / name, EPERM);
  while (!bytes.empty()) {
    const ssize_t done = ::write(file.get(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(folder / name, errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  // NFS says at a close that the disk is full.
  if (const int copy = ::fcntl(file.get(), F_DUPFD_CLOEXEC, 0); copy >= 0 && ::close(copy) != 0)
    fail(folder / name, errno);
}

}  // namespace

TableFiles::TableFiles(fs::path folder, bool zstd) : folder_(std::move(folder)), zstd_(zstd) {
  std::random_device random;
  name_ = fmt::format("{:08x}{:08x}", random(), random());
  buffer_.reserve(kBuffer);
}

TableFiles::~TableFiles() {
  if (finished_) return;
  for (const auto* list : {&written_, &manifests_})
    for (const Written& file : *list)
      if (files::Descriptor within; open_folder(file.folder, within) == 0)
        ::unlinkat(within.get(), temporary(file).c_str(), 0);
}

std::string TableFiles::temporary(const Written& file) const {
  return fmt::format(".{}{}.unfinished", name_, file.ending);
}

void TableFiles::add(Table table, const std::string& wanted, std::string_view lines, std::uint64_t rows) {
  constexpr std::size_t kMaxDays = 128;  // more than what is new has
  const bool known = days_.contains(wanted) || (days_.size() < kMaxDays && days_.insert(wanted).second);
  const std::string& day = known ? wanted : kNoDay;
  const Key key(table, day);
  File& file = files_[key];
  rows_[kTableNames.at(static_cast<std::size_t>(table))] += rows;
  if (buffer_.size() + lines.size() > kBuffer) flush();
  if (lines.size() > kBuffer) return write(key, file, lines);
  buffer_ += lines;
  file.pending.push_back(std::string_view(buffer_).substr(buffer_.size() - lines.size()));
}

void TableFiles::write(const Key& key, File& file, std::string_view lines) {
  if (file.bytes != 0 && file.bytes + lines.size() > kMaxFileBytes) {
    file.number = kNone;
    file.bytes = 0;
    ++file.part;
  }
  const bool fresh = file.number == kNone;
  if (fresh) {
    file.number = written_.size();
    written_.push_back(
        {folder_ / fmt::format("table={}", kTableNames.at(static_cast<std::size_t>(key.first))) /
             fmt::format("date={}", key.second),
         fmt::format("{}.ndjson{}", file.part == 0 ? "" : fmt::format(".{}", file.part),
                     zstd_ ? ".zst" : "")});
  }
  const Written& to = written_[file.number];
  const std::string packed = zstd_ ? compressed(lines) : std::string();
  append(to.folder, temporary(to), zstd_ ? packed : lines, fresh);
  file.bytes += lines.size();
}

void TableFiles::flush() {
  for (auto& [key, file] : files_) {
    if (file.pending.empty()) continue;
    std::string lines;
    for (const std::string_view piece : std::exchange(file.pending, {})) lines += piece;
    write(key, file, lines);
  }
  buffer_.clear();
}

void TableFiles::add_manifest(const std::string& ending, std::string_view bytes) {
  const Written& file = manifests_.emplace_back(Written{folder_ / "manifest", ending});
  append(file.folder, temporary(file), bytes, true);
}

void TableFiles::finish(const std::string& name) {
  flush();
  for (const auto* list : {&written_, &manifests_})
    for (const Written& file : *list) {
      const files::Descriptor within = opened(file.folder);
      const std::string to = name + file.ending;
      if (::renameat(within.get(), temporary(file).c_str(), within.get(), to.c_str()) != 0)
        fail(file.folder / to, errno);
    }
  finished_ = true;
}

}  // namespace kshim::exports
