// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/report_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kshim/files/open_file.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::analysis {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".jsonl";

/// `name`: of `path` in an open folder.
void add_file(std::string path, std::vector<ReportFile>& out, int folder, const char* name) {
  struct stat status {};
  ReportFile& file = out.emplace_back(ReportFile{std::move(path)});
  if (::fstatat(folder, name, &status, 0) != 0) return;
  if (S_ISREG(status.st_mode)) file.bytes = static_cast<std::uint64_t>(status.st_size);
  file.changed_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  file.owner = status.st_uid;
}

// Links to folders are not followed: a ring of them would never end. One folder is open at a time, and what
// is wrong with one costs that one: in a spool others are another user's.
void add_folder(const fs::path& folder, std::vector<ReportFile>& out, std::vector<std::string>& notes) {
  constexpr unsigned kDeepest = 16;
  const std::size_t before = out.size();
  const std::size_t notes_before = notes.size();
  bool deeper = false;
  std::vector<std::pair<std::string, unsigned>> left{{folder.string(), 0}};
  while (!left.empty()) {
    const auto [at, depth] = std::move(left.back());
    left.pop_back();
    const std::unique_ptr<DIR, int (*)(DIR*)> walk(::opendir(at.c_str()), ::closedir);
    int error = walk == nullptr && errno != EACCES ? errno : 0;
    while (walk != nullptr) {
      errno = 0;
      const dirent* const entry = ::readdir(walk.get());
      if (entry == nullptr) {
        error = errno;
        break;
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const int fd = ::dirfd(walk.get());
      struct stat status {};
      // What d_type does not tell; where a link leads.
      const bool link =
          entry->d_type == DT_LNK ||
          (entry->d_type == DT_UNKNOWN && ::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(status.st_mode));
      const bool is_folder = entry->d_type == DT_DIR ||
                             ((link || entry->d_type == DT_UNKNOWN) &&
                              ::fstatat(fd, entry->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode));
      std::string path = at;
      if (!path.ends_with('/')) path += '/';
      path += name;
      if (is_folder) {
        deeper = deeper || (!link && depth == kDeepest);
        if (!link && depth < kDeepest) left.emplace_back(std::move(path), depth + 1);
      } else if (!name.ends_with(kEnding) || name.size() == kEnding.size()) {
        continue;
      } else if (link && is_another_users_link(path)) {
        notes.push_back(fmt::format("{}: is a link of another user", path));
      } else {
        add_file(std::move(path), out, fd, entry->d_name);
      }
    }
    if (error != 0)
      notes.push_back(fmt::format("{}: cannot be listed: {}", at, std::generic_category().message(error)));
  }
  if (deeper)
    notes.push_back(fmt::format("{}: folders below the {}th are not read", folder.string(), kDeepest));
  if (out.size() == before && notes.size() == notes_before)
    notes.push_back(fmt::format("{}: holds no report (*.jsonl)", folder.string()));
}

}  // namespace

bool is_report(const fs::path& path) {
  constexpr std::size_t kFirstBytes = 4096;
  const std::string first = files::read_up_to(path, kFirstBytes).value_or("");
  const std::size_t begin = first.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return begin != std::string::npos && first[begin] == '{' &&
         first.substr(0, first.find('\n')).find("kshim-report/") != std::string::npos;
}

bool holds_reports(const fs::path& path) {
  constexpr std::size_t kTried = 20;
  std::error_code error;
  if (!fs::is_directory(path, error)) return fs::is_regular_file(path, error) && is_report(path);
  std::vector<std::string> ignored;
  const std::vector<ReportFile> files = find_report_files({path}, ignored);
  return std::ranges::any_of(std::span(files).first(std::min(files.size(), kTried)),
                             [](const ReportFile& file) { return is_report(file.path); });
}

bool is_another_users_link(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
         report::is_another_user(status.st_uid, ::geteuid());
}

std::vector<ReportFile> find_report_files(const std::vector<fs::path>& paths,
                                          std::vector<std::string>& notes) {
  std::vector<ReportFile> out;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
      notes.push_back(fmt::format("{}: is not there", path.string()));
    } else if (error) {
      notes.push_back(fmt::format("{}: {}", path.string(), error.message()));
    } else if (fs::is_directory(status)) {
      add_folder(path, out, notes);
    } else {
      add_file(path.string(), out, AT_FDCWD, path.c_str());
    }
  }
  // A folder's own files before those of a folder whose name goes on: as if a slash were the first character.
  for (ReportFile& file : out) std::ranges::replace(file.path, '/', '\0');
  std::ranges::sort(out, {}, &ReportFile::path);
  for (ReportFile& file : out) std::ranges::replace(file.path, '\0', '/');
  const auto same = [](const ReportFile& a, const ReportFile& b) { return a.path == b.path; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace kshim::analysis
