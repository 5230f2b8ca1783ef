// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <system_error>

#include "analyzer/user_error.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultFolder = "kshim-report";

// Sorts by time, and the process id keeps two runs of one second apart.
std::string make_run_id() {
  return fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(std::time(nullptr)), getpid());
}

fs::path temporary_folder() {
  const char* variable = std::getenv("TMPDIR");
  return variable != nullptr && *variable != '\0' ? variable : "/tmp";
}

// In a folder that others may write to: one of our own, not a link that somebody laid.
bool make_private(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) return false;
  if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 022U) == 0) return true;
  errno = EPERM;
  return false;
}

// The process record comes first in a report and names the run.
bool is_of_run(const fs::path& report, const std::string& run_id) {
  std::ifstream file(report);
  std::string line;
  std::getline(file, line);
  return line.find('"' + run_id + '"') != std::string::npos;
}

}  // namespace

RunFolder::RunFolder(const fs::path& wanted) : run_id_(make_run_id()) {
  if (!wanted.empty()) {
    if (!create(wanted)) {
      throw UserError(
          fmt::format("--report {}: cannot write there: {}", wanted.string(), std::strerror(errno)),
          exit_status::kRunFailed);
    }
    return;
  }
  const fs::path below = fs::path(kDefaultFolder) / run_id_;
  if (create(below)) return;
  const fs::path own = temporary_folder() / fmt::format("{}-{}", kDefaultFolder, geteuid());
  if (make_private(own) && create(own / run_id_)) return;
  throw UserError(fmt::format("cannot write reports, neither here nor in {}: {}; name a folder with --report",
                              temporary_folder().string(), std::strerror(errno)),
                  exit_status::kRunFailed);
}

RunFolder::~RunFolder() {
  std::error_code error;
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
    if (!fs::remove(*folder, error)) break;  // rmdir: fails where there is something in it
  }
}

bool RunFolder::create(const fs::path& path) {
  std::error_code error;
  fs::path grown;
  for (const fs::path& part : path) {
    grown /= part;
    if (part.empty() || fs::exists(grown, error)) continue;
    if (!fs::create_directory(grown, error)) {
      if (error) errno = error.value();
      return false;
    }
    made_.push_back(fs::absolute(grown));
  }
  if (!fs::is_directory(path, error)) {
    errno = ENOTDIR;
    return false;
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) return false;
  path_ = path;
  return true;
}

std::string RunFolder::pattern() const {
  // CMD may change its working directory, and `%` means something in the pattern.
  std::string pattern;
  for (const char c : fs::absolute(path_).lexically_normal().string()) {
    pattern += c;
    if (c == '%') pattern += c;
  }
  return pattern + "/%h.%p.jsonl";
}

std::vector<fs::path> RunFolder::reports() const {
  std::vector<fs::path> reports;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".jsonl" && is_of_run(entry->path(), run_id_))
      reports.push_back(entry->path());
  }
  std::sort(reports.begin(), reports.end());
  return reports;
}

}  // namespace kshim::cli
