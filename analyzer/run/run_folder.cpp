// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/run_folder.h"

#include <fmt/chrono.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <csignal>
#include <ctime>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "kshim/report/libc_calls.h"
#include "kshim/report/report_folder.h"

namespace kshim::run {
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

/// errno says why it is not open.
files::Descriptor open_folder(const fs::path& path, report::FolderRequest request = {}) {
  int fd = -1;
  errno = Walk::open(path.string(), request, fd);
  return files::Descriptor(fd);
}

/// A folder of the caller's own in one that others may write to. errno says why not.
bool make_private(const fs::path& folder) {
  std::error_code error;
  if (fs::is_symlink(folder, error)) {
    errno = ELOOP;
    return false;
  }
  const files::Descriptor made = open_folder(folder, {.make_missing = true, .mode = 0700});
  struct stat info {};
  if (!made || fstat(made.get(), &info) != 0) return false;
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
  if (const auto here = open_folder("."); here && fstat(here.get(), &info) == 0) {
    const report::DefaultFolder where = report::default_folder(info, geteuid());
    if (where == report::DefaultFolder::own_here) return {own_folder_in({}), {}};
    if (where == report::DefaultFolder::temporary)
      return {own_folder_in(temporary_folder()),
              "the folder is another user's, or somebody else can write to it"};
  }
  const auto there = open_folder(kDefaultFolder);
  if (!there && errno == ENOENT) return {kDefaultFolder, {}};
  if (there && fstat(there.get(), &info) == 0 && report::is_own_folder(info, geteuid()))
    return {kDefaultFolder, {}};
  return {own_folder_in(temporary_folder()),
          fmt::format("{} is another user's, or somebody else can write to it", kDefaultFolder)};
}

// The process record comes first in a report and names the run, far before this many bytes. CMD may have left
// a FIFO or a link to a device of that name.
bool is_of_run(const fs::path& report, const std::string& run_id) {
  constexpr std::size_t kHead = 65536;
  std::error_code error;
  if (fs::is_symlink(report, error)) return false;
  const std::string head = files::read_up_to(report, kHead).value_or("");
  return core::contains(std::string_view(head).substr(0, head.find('\n')), '"' + run_id + '"');
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
    errno = 0;
    if (connect_to(entry->path().string()) || errno != ECONNREFUSED) return false;
    any = true;
  }
  return any && !error;
}

/// Not getrandom(3), which glibc has since 2.25. An old kernel lacks the call, and a chroot the device.
bool fill_randomly(std::span<unsigned char> bytes) {
  const auto wanted = static_cast<ssize_t>(bytes.size());
  if (syscall(SYS_getrandom, bytes.data(), bytes.size(), 0) == wanted) return true;
  const files::Descriptor fd(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  return read(fd.get(), bytes.data(), bytes.size()) == wanted;
}

}  // namespace

RunFolder::RunFolder(const fs::path& wanted) : run_id_(make_run_id()) {
  if (!wanted.empty()) {
    if (create(wanted)) return;
    const char* why = errno == ELOOP ? "a link on the way belongs to another user" : std::strerror(errno);
    throw core::UserError(fmt::format("--report {}: cannot write there: {}", wanted.string(), why),
                          core::exit_status::kRunFailed);
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
  throw core::UserError(
      fmt::format("cannot write reports, neither here nor in {}: {}; name a folder with --report",
                  temporary_folder().string(), std::strerror(errno)),
      core::exit_status::kRunFailed);
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
  const files::Descriptor folder = open_folder(path, {.make_missing = true, .mode = 0755});
  if (!folder) return false;
  made_ = std::move(made);
  if (faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return false;
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
    const pid_t pid = core::parse_number<pid_t>(std::string_view(name).substr(dash + 1)).value_or(0);
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
  });
  for (const fs::path& path : left) rmdir(path.c_str());  // fails where there is something in it
}

std::optional<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (path.size() >= sizeof out.sun_path) return std::nullopt;
  std::memcpy(out.sun_path, path.c_str(), path.size());
  return out;
}

files::Descriptor connect_to(const std::string& path) {
  const auto address = socket_address(path);
  files::Descriptor fd(address ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1);
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0) return fd;
  const int error = std::exchange(errno, 0);
  fd = files::Descriptor();
  errno = error;
  return fd;
}

std::string random_token() {
  std::array<unsigned char, 6> bytes{};  // 48 bits; a sun_path is short
  if (!fill_randomly(bytes)) return {};
  return core::hex(std::as_bytes(std::span(bytes)));
}

}  // namespace kshim::run
