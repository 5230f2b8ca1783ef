// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/report_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kshim/files/open_file.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::analysis {
namespace {

namespace fs = std::filesystem;

void add_file(const fs::path& path, std::vector<ReportFile>& out) {
  struct stat status {};
  ReportFile& file = out.emplace_back(ReportFile{path.string()});
  if (::stat(path.c_str(), &status) != 0) return;
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
  std::vector<std::pair<fs::path, unsigned>> left{{folder, 0}};
  while (!left.empty()) {
    const auto [at, depth] = std::move(left.back());
    left.pop_back();
    std::error_code error;
    fs::directory_iterator walk(at, fs::directory_options::skip_permission_denied, error);
    for (; !error && walk != fs::directory_iterator(); walk.increment(error)) {
      std::error_code ignored;
      const bool link = walk->is_symlink(ignored);
      if (walk->is_directory(ignored)) {
        deeper = deeper || (!link && depth == kDeepest);
        if (!link && depth < kDeepest) left.emplace_back(walk->path(), depth + 1);
      } else if (walk->path().extension() != ".jsonl") {
        continue;
      } else if (link && is_another_users_link(walk->path())) {
        notes.push_back(fmt::format("{}: is a link of another user", walk->path().string()));
      } else {
        add_file(walk->path(), out);
      }
    }
    if (error) notes.push_back(fmt::format("{}: cannot be listed: {}", at.string(), error.message()));
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
      add_file(path, out);
    }
  }
  // A folder's own files before those of a folder whose name goes on.
  const auto before = [](char a, char b) { return a != b && (a == '/' || (b != '/' && a < b)); };
  std::ranges::sort(out, [&](const ReportFile& a, const ReportFile& b) {
    return std::lexicographical_compare(a.path.begin(), a.path.end(), b.path.begin(), b.path.end(), before);
  });
  const auto same = [](const ReportFile& a, const ReportFile& b) { return a.path == b.path; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace kshim::analysis
