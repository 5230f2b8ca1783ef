// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>

#include "analyzer/core/user_error.h"
#include "kshim/files/open_file.h"

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

/// As the shim (shim/report/report_path.cpp) and Linux's fs.protected_symlinks have it: made by neither us
/// nor the owner of the folder that everybody may write to.
bool laid_by_another(const fs::path& folder, const struct stat& entry) {
  if (entry.st_uid == geteuid()) return false;
  struct stat where {};
  if (stat(folder.c_str(), &where) != 0) return true;
  return (where.st_mode & S_ISVTX) != 0 && (where.st_mode & S_IWOTH) != 0 && where.st_uid != entry.st_uid;
}

/// The first link on the way that the shim will not follow; empty where there is none.
fs::path trap_on(const fs::path& path) {
  fs::path grown;
  for (const fs::path& part : fs::absolute(path)) {
    const fs::path before = grown;
    grown /= part;
    struct stat entry {};
    if (lstat(grown.c_str(), &entry) == 0 && S_ISLNK(entry.st_mode) && laid_by_another(before, entry))
      return grown;
  }
  return {};
}

/// Why kshim-report here, which nobody asked for in particular, is left alone; empty where it may be taken.
std::string why_not_here() {
  struct stat entry {};
  if (lstat(kDefaultFolder, &entry) != 0) return {};
  if (laid_by_another(".", entry)) return "somebody else laid it in a folder that everybody may write to";
  // Not the group's right: with umask 002 one's own folders have it.
  if (stat(kDefaultFolder, &entry) == 0 && S_ISDIR(entry.st_mode) && (entry.st_mode & S_IWOTH) != 0 &&
      (entry.st_mode & S_ISVTX) == 0)
    return "everybody may remove what is in it";
  return {};
}

// The process record comes first in a report and names the run, far before this many bytes. CMD may have left
// a FIFO or a link to a device of that name.
std::string first_line(const fs::path& report) {
  constexpr std::size_t kHead = 65536;
  std::error_code error;
  if (fs::is_symlink(report, error)) return {};
  std::string head = files::read_up_to(report, kHead).value_or("");
  head.resize(std::min(head.size(), head.find('\n')));
  return head;
}

bool is_of_run(const fs::path& report, const std::string& run_id) {
  return first_line(report).find('"' + run_id + '"') != std::string::npos;
}

// The shim takes no longer pattern (shim/guest/options.cpp), and a path has 4,095 bytes at most.
constexpr std::size_t kLongestPattern = 3000;

}  // namespace

bool is_report(const fs::path& path) {
  return first_line(path).find("\"schema\":\"kshim-report/") != std::string::npos;
}

RunFolder::RunFolder(const fs::path& wanted) : run_id_(make_run_id()) {
  if (!wanted.empty()) {
    if (const fs::path trap = trap_on(wanted); !trap.empty()) {
      throw UserError(
          fmt::format("--report {}: {} is a link that somebody else laid in a folder that everybody "
                      "may write to, and is not followed",
                      wanted.string(), trap.string()),
          exit_status::kRunFailed);
    }
    if (!create(wanted)) {
      throw UserError(
          fmt::format("--report {}: cannot write there: {}", wanted.string(), std::strerror(errno)),
          exit_status::kRunFailed);
    }
    return;
  }
  const fs::path below = fs::path(kDefaultFolder) / run_id_;
  const std::string why_not = why_not_here();
  if (why_not.empty() && create(below)) return;
  const fs::path own = temporary_folder() / fmt::format("{}-{}", kDefaultFolder, geteuid());
  if (make_private(own) && create(own / run_id_)) {
    if (!why_not.empty())
      remark_ = fmt::format("{} here is not used: {}; the reports are in {}", kDefaultFolder, why_not,
                            path_.string());
    return;
  }
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
    // Whatever the umask: others may have a look at it, and nobody else puts anything into it.
    if (mkdir(grown.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;  // another run was faster
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
  if (pattern().size() <= kLongestPattern) return true;
  errno = ENAMETOOLONG;
  return false;
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
