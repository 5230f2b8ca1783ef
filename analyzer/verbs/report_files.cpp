// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/report_files.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>

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

// Links to folders are not followed: a ring of them would never end.
void add_folder(const fs::path& folder, std::vector<ReportFile>& out, std::vector<std::string>& notes) {
  const std::size_t before = out.size();
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    std::error_code ignored;
    if (walk->path().extension() == ".jsonl" && !walk->is_directory(ignored)) add_file(walk->path(), out);
  }
  if (error) {
    notes.push_back(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  } else if (out.size() == before) {
    notes.push_back(fmt::format("{}: holds no report (*.jsonl)", folder.string()));
  }
}

}  // namespace

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
  std::sort(out.begin(), out.end(), [&](const ReportFile& a, const ReportFile& b) {
    return std::lexicographical_compare(a.path.begin(), a.path.end(), b.path.begin(), b.path.end(), before);
  });
  const auto same = [](const ReportFile& a, const ReportFile& b) { return a.path == b.path; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace kshim::analysis
