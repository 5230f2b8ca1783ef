// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/answer_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kshim/files/open_file.h"
#include "kshim/report/hmac.h"

namespace kshim::verbs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 512;
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMostOfOne = std::size_t{8} << 20;

}  // namespace

AnswerCache::AnswerCache() {
  const char* base = ::secure_getenv("XDG_CACHE_HOME");
  const char* home = ::secure_getenv("HOME");
  fs::path folder;
  if (base != nullptr && *base == '/')
    folder = base;
  else if (home != nullptr && *home == '/')
    folder = fs::path(home) / ".cache";
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  folder /= "kshim";
  ::mkdir(folder.c_str(), S_IRWXU);
  struct stat status {};
  const bool ours = ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                    status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (ours) folder_ = folder;
}

fs::path AnswerCache::file_of(std::string_view question) const {
  const auto hash = report::sha256(question);
  return folder_ / std::string(hash.data(), hash.size());
}

std::optional<std::string> AnswerCache::find(std::string_view question, std::chrono::seconds age) const {
  if (folder_.empty()) return std::nullopt;
  const files::OpenFile file = files::open_to_read(file_of(question));
  if (!file || file.status.st_uid != ::geteuid()) return std::nullopt;
  if (::time(nullptr) - file.status.st_mtime > age.count()) return std::nullopt;
  return files::read_whole(file, kMostOfOne);
}

void AnswerCache::keep(std::string_view question, std::string_view answer) const {
  if (folder_.empty() || answer.size() > kMostOfOne) return;
  std::string name = (folder_ / "new-XXXXXX").string();
  const files::Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) return;
  const bool whole =
      ::write(file.get(), answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()) &&
      ::rename(name.c_str(), file_of(question).c_str()) == 0;
  if (!whole) ::unlink(name.c_str());
  struct Kept {
    fs::file_time_type time;
    fs::path path;
    std::uint64_t bytes = 0;
  };
  std::vector<Kept> kept;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    kept.push_back({entry.last_write_time(error), entry.path(), entry.file_size(error)});
    bytes += kept.back().bytes;
  }
  std::ranges::sort(kept, {}, &Kept::time);
  for (std::size_t i = 0; i < kept.size() && (kept.size() - i > kMostFiles || bytes > kMostBytes); ++i) {
    fs::remove(kept[i].path, error);
    bytes -= kept[i].bytes;
  }
}

}  // namespace kshim::verbs
