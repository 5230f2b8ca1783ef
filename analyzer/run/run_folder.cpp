// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "kshim/files/open_file.h"
#include "kshim/report/libc_calls.h"
#include "kshim/report/report_folder.h"
#include "kshim/report/trusted_folder.h"

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

using Walk = report::FolderWalk<report::LibcCalls>;

/// A folder that is open for a moment.
class Folder {
 public:
  explicit Folder(const fs::path& path, report::FolderRequest request = {}) {
    errno = Walk::open(path.string(), request, fd_);
  }
  ~Folder() {
    if (fd_ >= 0) close(fd_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  bool status(struct stat& out) const { return fd_ >= 0 && fstat(fd_, &out) == 0; }
  bool takes_files() const { return fd_ >= 0 && faccessat(fd_, ".", W_OK | X_OK, AT_EACCESS) == 0; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A folder of the caller's own in one that others may write to. errno says why not.
bool make_private(const fs::path& folder) {
  std::error_code error;
  if (fs::is_symlink(folder, error)) {
    errno = ELOOP;
    return false;
  }
  const Folder made(folder, {.make_missing = true, .mode = 0700});
  struct stat info {};
  if (!made.status(info)) return false;
  if (report::is_own_folder(info, geteuid())) return true;
  errno = EPERM;
  return false;
}

fs::path own_folder_in(const fs::path& folder) {
  return folder / fmt::format("{}-{}", kDefaultFolder, geteuid());
}

/// Where reports go that nobody gave a folder for, as the shim has it (report_folder.h); and why not here.
struct DefaultPlace {
  fs::path folder;
  std::string why_not;
};
DefaultPlace default_place() {
  struct stat info {};
  const Folder here(".");
  if (here.status(info)) {
    switch (report::default_folder(info, geteuid())) {
      case report::DefaultFolder::own_here:
        return {own_folder_in({}), {}};
      case report::DefaultFolder::temporary:
        return {own_folder_in(temporary_folder()),
                "the folder is another user's, or somebody else can write to it"};
      case report::DefaultFolder::here:
        break;
    }
  }
  const Folder there(kDefaultFolder);
  if (!there && errno == ENOENT) return {kDefaultFolder, {}};
  if (there.status(info) && report::is_own_folder(info, geteuid())) return {kDefaultFolder, {}};
  return {own_folder_in(temporary_folder()),
          fmt::format("{} is another user's, or somebody else can write to it", kDefaultFolder)};
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
constexpr std::size_t kMaxPatternLength = 3000;

/// The entries of a folder that `pick` wants; of very many, those among the first.
template <class Pick>
std::vector<fs::path> entries_where(const fs::path& folder, Pick pick) {
  constexpr std::size_t kMax = 10'000;
  std::vector<fs::path> out;
  std::error_code error;
  std::size_t count = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && ++count < kMax;
       entry.increment(error))
    if (pick(entry->path())) out.push_back(entry->path());
  return out;
}

/// Whether nobody listens at any socket of the folder: the run that made it was killed.
bool is_left_behind(const fs::path& folder) {
  std::error_code error;
  bool any = false;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = entry->path().string();
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool refused = fd >= 0 &&
                         connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
                         errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    if (!refused) return false;
    any = true;
  }
  return any && !error;
}

/// Not getrandom(3), which glibc has since 2.25. An old kernel lacks the call, and a chroot the device.
bool fill_randomly(std::span<unsigned char> bytes) {
  const auto wanted = static_cast<ssize_t>(bytes.size());
  if (syscall(SYS_getrandom, bytes.data(), bytes.size(), 0) == wanted) return true;
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool filled = read(fd, bytes.data(), bytes.size()) == wanted;
  close(fd);
  return filled;
}

}  // namespace

bool is_report(const fs::path& path) {
  return first_line(path).find("\"schema\":\"kshim-report/") != std::string::npos;
}

RunFolder::RunFolder(const fs::path& wanted) : run_id_(make_run_id()) {
  if (!wanted.empty()) {
    if (create(wanted)) return;
    const char* why = errno == ELOOP ? "a link on the way belongs to another user" : std::strerror(errno);
    throw UserError(fmt::format("--report {}: cannot write there: {}", wanted.string(), why),
                    exit_status::kRunFailed);
  }
  const DefaultPlace place = default_place();
  const bool here = place.folder == kDefaultFolder;
  if ((here || make_private(place.folder)) && create(place.folder / run_id_)) {
    remove_empty_runs(place.folder);
    if (!place.why_not.empty())
      remark_ = fmt::format("{}; the reports are in {}", place.why_not, path_.string());
    return;
  }
  const fs::path own = own_folder_in(temporary_folder());
  if (make_private(own) && create(own / run_id_)) {
    remove_empty_runs(own);
    return;
  }
  // Another user may have made a folder of that name, to be in the way.
  std::string fresh = own.string() + ".XXXXXX";
  if (mkdtemp(fresh.data()) != nullptr && create(fs::path(fresh) / run_id_)) {
    made_.insert(made_.begin(), fresh);
    remark_ = fmt::format("{} cannot be used; the reports are in {}", own.string(), path_.string());
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
  std::vector<fs::path> made;
  fs::path grown;
  for (const fs::path& part : path) {
    grown /= part;
    if (!part.empty() && !fs::exists(fs::symlink_status(grown, error))) made.push_back(fs::absolute(grown));
  }
  // Whatever the umask: others may have a look at it, and nobody else puts anything into it.
  const Folder folder(path, {.make_missing = true, .mode = 0755});
  if (!folder) return false;
  made_ = std::move(made);
  if (!folder.takes_files()) return false;
  path_ = path;
  if (pattern().size() <= kMaxPatternLength) return true;
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
  std::ranges::sort(reports);
  return reports;
}

void remove_dead_sockets(const fs::path& folder) {
  const auto left = entries_where(folder, [](const fs::path& path) {
    struct stat info {};
    return path.filename().string().starts_with("kshim-run-") && lstat(path.c_str(), &info) == 0 &&
           S_ISDIR(info.st_mode) && info.st_uid == geteuid() && is_left_behind(path);
  });
  std::error_code error;
  for (const fs::path& path : left) fs::remove_all(path, error);
}

void remove_empty_runs(const fs::path& folder) {
  const auto left = entries_where(folder, [](const fs::path& path) {
    const std::string name = path.filename().string();
    const std::size_t dash = name.rfind('-');
    if (dash != std::string_view("20260101-000000").size()) return false;
    const pid_t pid = parse_number<pid_t>(std::string_view(name).substr(dash + 1)).value_or(0);
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
  });
  for (const fs::path& path : left) rmdir(path.c_str());  // fails where there is something in it
}

std::string random_token() {
  std::array<unsigned char, 6> bytes{};  // 48 bits; a sun_path is short
  if (!fill_randomly(bytes)) return {};
  return hex(std::as_bytes(std::span(bytes)));
}

}  // namespace kshim::cli
