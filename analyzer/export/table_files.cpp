// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/table_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <system_error>

#include "analyzer/core/user_error.h"

namespace kshim::exports {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostPending = std::size_t{64} << 20;
constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::uint64_t kLargestFile = std::uint64_t{256} << 20;
constexpr std::string_view kUnfinished = ".unfinished";

[[noreturn]] void fail(const fs::path& path, int error) {
  throw cli::UserError(fmt::format("{}: {}", path.string(), std::generic_category().message(error)),
                       cli::exit_status::kMisuse);
}

std::string compressed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

void append(const fs::path& path, std::string_view bytes, bool fresh) {
  const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (fresh ? O_CREAT | O_EXCL : 0);
  const int fd = ::open(path.c_str(), flags, 0600);
  if (fd < 0) fail(path, errno);
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      const int error = errno;
      ::close(fd);
      fail(path, error);
    }
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  if (::close(fd) != 0) fail(path, errno);
}

}  // namespace

TableFiles::TableFiles(fs::path folder, std::string name, bool zstd)
    : folder_(std::move(folder)), name_(std::move(name)), zstd_(zstd) {}

TableFiles::~TableFiles() {
  if (finished_) return;
  std::error_code ignored;
  for (const fs::path& path : written_) fs::remove(path, ignored);
}

void TableFiles::add(const Row& row, std::string_view day) {
  const Key key(row.table(), day);
  File& file = files_[key];
  const std::size_t before = file.pending.size();
  row.add_to(file.pending);
  pending_ += file.pending.size() - before;
  ++rows_[kTableNames.at(static_cast<std::size_t>(row.table()))];
  if (file.pending.size() >= kBlock) flush(key, file);
  if (pending_ >= kMostPending) flush_all();
}

void TableFiles::flush(const Key& key, File& file) {
  if (file.pending.empty()) return;
  if (file.bytes >= kLargestFile) {
    file.path.clear();
    file.bytes = 0;
    ++file.number;
  }
  const bool fresh = file.path.empty();
  if (fresh) {
    const fs::path folder = folder_ /
                            fmt::format("table={}", kTableNames.at(static_cast<std::size_t>(key.first))) /
                            fmt::format("date={}", key.second);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail(folder, error.value());
    const std::string number = file.number == 0 ? std::string() : fmt::format(".{}", file.number);
    file.path = folder / fmt::format(".{}{}.ndjson{}{}", name_, number, zstd_ ? ".zst" : "", kUnfinished);
    fs::remove(file.path, error);  // of an export of the same input that was killed
    written_.push_back(file.path);
  }
  append(file.path, zstd_ ? compressed(file.pending) : file.pending, fresh);
  file.bytes += file.pending.size();
  pending_ -= file.pending.size();
  file.pending.clear();
}

void TableFiles::write_file(const fs::path& path, std::string_view bytes) { append(path, bytes, true); }

void TableFiles::flush_all() {
  for (auto& [key, file] : files_) flush(key, file);
}

void TableFiles::finish() {
  flush_all();
  for (const fs::path& path : written_) {
    std::string name = path.filename().string().substr(1);
    name.resize(name.size() - kUnfinished.size());
    std::error_code error;
    fs::rename(path, path.parent_path() / name, error);
    if (error) fail(path, error.value());
  }
  finished_ = true;
}

}  // namespace kshim::exports
