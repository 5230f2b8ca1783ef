// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/report_files.h"

#include <dirent.h>
#include <unistd.h>

#include "kshim/files/open_file.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::verbs {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".jsonl";

constexpr std::size_t kDeepest = 16;

/// `name`: of `path` in an open folder.
ReportFile report_file(std::string path, int folder, const char* name) {
  struct stat status {};
  ReportFile file{std::move(path)};
  if (::fstatat(folder, name, &status, 0) != 0) return file;
  if (S_ISREG(status.st_mode)) file.bytes = static_cast<std::uint64_t>(status.st_size);
  file.arrived_s = status.st_ctim.tv_sec;
  file.changed_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  file.owner = status.st_uid;
  return file;
}

/// Orders a folder's files before those of a folder whose name goes on: as if a slash were the first
/// character.
bool comes_first(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
}

/// Whether it is a link of another user, who would choose which file is read with the caller's rights.
bool is_another_users_link(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
         report::is_another_user(status.st_uid, ::geteuid());
}

}  // namespace

std::string json_start(const fs::path& path) {
  constexpr std::size_t kFirstBytes = 4096;
  const std::string first = files::read_up_to(path, kFirstBytes).value_or("");
  const std::size_t begin = std::min(first.find_first_not_of(" \t\r\n\xef\xbb\xbf"), first.size());
  return first.substr(begin).starts_with('{') ? first.substr(begin, first.find('\n', begin) - begin) : "";
}

bool is_report(const fs::path& path) { return core::contains(json_start(path), "kshim-report/"); }

bool holds_reports(const fs::path& path) {
  constexpr unsigned kTried = 20;
  std::error_code error;
  if (!fs::is_directory(path, error)) return fs::is_regular_file(path, error) && is_report(path);
  std::vector<std::string> ignored;
  ReportWalk walk({path}, ignored);
  for (unsigned tried = 0; tried < kTried; ++tried) {
    const auto file = walk.next();
    if (!file || is_report(file->path)) return file.has_value();
  }
  return false;
}

struct ReportWalk::Folder {
  std::unique_ptr<DIR, int (*)(DIR*)> fd{nullptr, ::closedir};
  std::string path;                 ///< ends with a slash
  std::string names;                ///< each ends with NUL, after a slash if it is a folder
  std::vector<std::uint32_t> left;  ///< where the names begin, the next one last
};

ReportWalk::ReportWalk(const std::vector<fs::path>& paths, std::vector<std::string>& notes) : notes_(notes) {
  for (const fs::path& path : paths) {
    std::string& text = paths_.emplace_back(path.string());
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  }
  std::ranges::sort(paths_, comes_first);
  paths_.erase(std::unique(paths_.begin(), paths_.end()), paths_.end());
}

std::optional<ReportFile> ReportWalk::next() {
  for (;;) {
    if (open_.empty()) {
      if (begun_ == paths_.size()) return std::nullopt;
      if (auto file = begin(paths_[begun_++])) return file;
      continue;
    }
    const std::shared_ptr<Folder> folder = open_.back();
    if (folder->left.empty()) {
      open_.pop_back();
      if (!open_.empty()) continue;
      const std::string& path = paths_[begun_ - 1];
      if (deeper_) notes_.push_back(fmt::format("{}: folders below the {}th are not read", path, kDeepest));
      if (!found_ && notes_.size() == notes_before_)
        notes_.push_back(
            fmt::format("{}: holds no report (*.jsonl); `kshim run -- PROGRAM` makes one", path));
      continue;
    }
    const char* const name = folder->names.data() + folder->left.back();
    folder->left.pop_back();
    std::string path = folder->path + name;
    if (!path.ends_with('/')) return report_file(std::move(path), ::dirfd(folder->fd.get()), name);
    open(std::move(path));
  }
}

std::optional<ReportFile> ReportWalk::begin(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    notes_.push_back(fmt::format("{}: is not there", path));
  } else if (error) {
    notes_.push_back(fmt::format("{}: {}", path, error.message()));
  } else if (!fs::is_directory(status)) {
    return report_file(path, AT_FDCWD, path.c_str());
  } else {
    found_ = deeper_ = false;
    notes_before_ = notes_.size();
    open(path == "/" ? path : path + '/');
  }
  return std::nullopt;
}

// Links to folders are not followed: a ring of them would never end. What is wrong with one folder costs that
// one: in a spool others are another user's.
void ReportWalk::open(std::string path) {
  Folder& folder = *open_.emplace_back(std::make_shared<Folder>());
  folder.path = std::move(path);
  folder.fd.reset(::opendir(folder.path.c_str()));
  int error = folder.fd == nullptr && errno != EACCES ? errno : 0;
  while (folder.fd != nullptr) {
    errno = 0;
    const dirent* const entry = ::readdir(folder.fd.get());
    if (entry == nullptr) {
      error = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const int fd = ::dirfd(folder.fd.get());
    struct stat status {};
    // What d_type does not tell; where a link leads.
    const bool link =
        entry->d_type == DT_LNK ||
        (entry->d_type == DT_UNKNOWN && ::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode));
    const bool is_folder =
        entry->d_type == DT_DIR || ((link || entry->d_type == DT_UNKNOWN) &&
                                    ::fstatat(fd, entry->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode));
    if (is_folder ? link : !name.ends_with(kEnding) || name.size() == kEnding.size()) continue;
    const bool too_deep = is_folder && open_.size() > kDeepest;
    deeper_ = deeper_ || too_deep;
    found_ = found_ || !is_folder;
    const std::string at = folder.path + entry->d_name;
    const bool other = !is_folder && link && is_another_users_link(at);
    if (other) notes_.push_back(fmt::format("{}: is a link of another user", at));
    // One that is among the paths has its own turn.
    if (too_deep || other || (paths_.size() > 1 && std::ranges::binary_search(paths_, at, comes_first)))
      continue;
    folder.left.push_back(static_cast<std::uint32_t>(folder.names.size()));
    folder.names += name;
    folder.names.append(is_folder ? std::string_view("/\0", 2) : std::string_view("\0", 1));
  }
  if (error != 0)
    notes_.push_back(fmt::format("{}: cannot be listed: {}",
                                 folder.path.substr(0, std::max<std::size_t>(folder.path.size() - 1, 1)),
                                 std::generic_category().message(error)));
  std::ranges::sort(folder.left, [&](std::uint32_t a, std::uint32_t b) {
    return comes_first(folder.names.data() + b, folder.names.data() + a);
  });
}

std::vector<ReportFile> find_report_files(const std::vector<fs::path>& paths,
                                          std::vector<std::string>& notes) {
  std::vector<ReportFile> out;
  ReportWalk walk(paths, notes);
  while (auto file = walk.next()) out.push_back(*std::move(file));
  return out;
}

}  // namespace kshim::verbs
