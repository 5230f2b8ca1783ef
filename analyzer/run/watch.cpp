// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <unordered_set>

#include "analyzer/core/memory_limit.h"
#include "analyzer/core/user_error.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/run/run_folder.h"
#include "analyzer/verbs/report_files.h"

namespace kshim::run {
using core::contains;
using diagnose::BlindProcess;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEnvironment = std::size_t{8} << 20U;

// What could be read: a file in /proc fails with ESRCH once its process is gone.
std::string read_file(const fs::path& path) {
  constexpr std::size_t kMax = std::size_t{64} << 20U;
  return files::read_up_to(path, kMax).value_or("");
}

void append_children(pid_t pid, std::vector<pid_t>& out) {
  std::error_code error;
  fs::directory_iterator task(fmt::format("/proc/{}/task", pid), error);
  for (const fs::directory_iterator end; !error && task != end; task.increment(error)) {
    std::istringstream children(read_file(task->path() / "children"));
    for (pid_t child = 0; children >> child;) out.push_back(child);
  }
}

/// Field 4 of proc_pid_stat(5), behind the command name in parentheses; 0 where it cannot be told.
pid_t parent_of(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= stat.size()) return 0;
  return core::first_number<pid_t>(std::string_view(stat).substr(name_end + 4)).value_or(0);
}

// Without CONFIG_PROC_CHILDREN.
std::multimap<pid_t, pid_t> all_children() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  fs::directory_iterator process("/proc", error);
  for (const fs::directory_iterator end; !error && process != end; process.increment(error)) {
    const pid_t pid = core::parse_number<pid_t>(process->path().filename().string()).value_or(0);
    if (pid == 0) continue;
    if (const pid_t parent = parent_of(pid); parent != 0) children.emplace(parent, pid);
  }
  return children;
}

bool has_children_files() {
  static const bool kHas = access("/proc/thread-self/children", R_OK) == 0;
  return kHas;
}

struct MappedCode {
  std::vector<std::string> files;
  unsigned c_libraries = 0;
};

// proc_pid_maps(5): address, rights, offset, device, inode, path. A file has one segment of code, so a second
// one of the C library is that of another namespace.
MappedCode mapped_code(const std::string& maps) {
  MappedCode out;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos || !contains(line, " r-xp ")) continue;
    const std::string file = line.substr(path);
    if (fs::path(file).filename() == "libc.so.6") ++out.c_libraries;
    if (!contains(out.files, file)) out.files.push_back(file);
  }
  return out;
}

/// Where the driver is mapped: as its parent in the child of a fork, elsewhere after an exec.
std::string_view place_of_driver(std::string_view maps) {
  const std::size_t name = maps.find("/libcuda.so");
  if (name == std::string_view::npos) return {};
  const std::size_t line = maps.rfind('\n', name) + 1;  // npos + 1 is the first line
  return maps.substr(line, maps.find(' ', line) - line);
}

/// A fork's child that has the driver from its parent: it cannot use the driver (CUDA does not survive fork),
/// and most such children are about to become another program.
bool inherited_driver(pid_t pid, std::string_view maps) {
  const pid_t parent = parent_of(pid);
  if (parent == 0) return false;
  const std::string of_parent = read_file(fmt::format("/proc/{}/maps", parent));
  return place_of_driver(of_parent) == place_of_driver(maps);
}

bool is_of_python_package(const std::string& path) {
  return contains(path, "/site-packages/") || contains(path, "/dist-packages/");
}

/// Whether a file names the driver's: a static runtime in it does, and so does a file linked to it.
bool names_driver(const std::string& path) {
  constexpr std::size_t kMax = std::size_t{64} << 20U;
  const std::string name = fs::path(path).filename().string();
  if (name.starts_with("libcuda.so") || name.starts_with("libnvidia-") || name == "libkshim.so") return false;
  return files::read_up_to(path, kMax).value_or("").find("libcuda.so") != std::string::npos;
}

/// The numbers in HOST.PID.jsonl and HOST.PID.N.jsonl that may be a process: both of the latter's.
void add_processes(const fs::path& report, std::set<pid_t>& out) {
  fs::path rest = report.stem();
  for (int i = 0; i < 2; ++i) {
    const std::string part = rest.extension().string();
    const pid_t pid =
        part.empty() ? 0 : core::parse_number<pid_t>(std::string_view(part).substr(1)).value_or(0);
    if (pid != 0) out.insert(pid);
    rest = rest.stem();
  }
}

std::string reason_of(pid_t pid, const fs::path& exe) {
  const std::string environment = read_file(fmt::format("/proc/{}/environ", pid));
  const bool kept = std::ranges::any_of(
      core::split(environment, std::string_view("\0", 1)),
      [](const std::string& row) { return row.starts_with("LD_PRELOAD=") && contains(row, "libkshim.so"); });
  if (!environment.empty() && !kept)
    return "its environment was cleared: LD_PRELOAD does not contain libkshim.so";
  const std::string reason = device_code::blind_reason(exe);
  return reason.empty() ? "its loader did not load libkshim.so" : reason;
}

constexpr std::size_t kMaxAnnounced = 100'000;
constexpr std::size_t kMaxCallers = 256;  // descriptors

bool names_driver_alone(std::string_view maps) {
  return !contains(maps, "/libkshim.so") &&
         (contains(maps, "/libcuda.so") || contains(maps, "/libcudart.so"));
}

constexpr std::size_t kMaxLost = 10;

fs::path normal(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

// A clause about the report that a process said it writes.
std::string why_lost(const fs::path& path) {
  if (path.empty()) return "it could write no report";
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error) return fmt::format("its report {} cannot be read: {}", path.string(), error.message());
  if (!there) return fmt::format("its report {} is not there any more", path.string());
  if (access(path.c_str(), R_OK) != 0)
    return fmt::format("its report {} cannot be read: {}", path.string(), std::strerror(errno));
  return fs::file_size(path, error) == 0 && !error
             ? fmt::format("its report {} is empty: nothing could be written there", path.string())
             : fmt::format("{} is not a report", path.string());
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> found;
  if (has_children_files()) {
    append_children(root, found);
    for (std::size_t i = 0; i < found.size(); ++i) append_children(found[i], found);
    return found;
  }
  const std::multimap<pid_t, pid_t> children = all_children();
  found.push_back(root);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<fs::path> socket_folders(const fs::path& reports) {
  // TMPDIR is second: it tends to be long, and to be on a network.
  std::vector<fs::path> out = {"/tmp"};
  for (const char* name : {"TMPDIR", "XDG_RUNTIME_DIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value == '/') out.emplace_back(value);
  }
  if (!reports.empty()) out.push_back(fs::absolute(reports).lexically_normal());
  return out;
}

Watch::Watch(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders)
    if (listen_in(folder)) break;
}

bool Watch::listen_in(const fs::path& folder) {
  remove_dead_sockets(folder);
  std::string own = (folder / "kshim-run-XXXXXX").string();
  const std::string secret = random_token();
  if (secret.empty() || !socket_address(own + "/" + secret)) return false;
  if (mkdtemp(own.data()) == nullptr) return false;  // with mode 0700
  // /proc/net/unix shows everybody the name that it was bound to, and goes on showing that one.
  const std::string bound = own + "/socket";
  const std::string path = own + "/" + secret;
  const auto address = socket_address(bound);
  files::Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A program that goes on as another user (gosu, su) still says what it does: a process that knows the name
  // may connect, and only the environment of the run has it. The folder is not to be listed.
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0 || rename(bound.c_str(), path.c_str()) != 0 ||
      chmod(path.c_str(), 0622) != 0 || chmod(own.c_str(), 0711) != 0) {
    std::error_code error;
    fs::remove_all(own, error);
    return false;
  }
  folder_ = own;
  socket_path_ = path;
  fd_ = std::move(fd);
  return true;
}

Watch::~Watch() {
  try {
    stop();
  } catch (const std::exception&) {
    failure_ = nullptr;  // another one is on its way
  }
  std::error_code error;
  if (!folder_.empty()) fs::remove_all(folder_, error);
}

void Watch::start() {
  stop_ = files::Descriptor(eventfd(0, EFD_CLOEXEC));
  core::allow_threads(1);
  // Signals are for the thread that waits for CMD.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    if (!stop_) throw std::system_error(errno, std::generic_category());
    thread_ = std::thread(&Watch::go_on, this);
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw core::UserError(fmt::format("cannot start a thread: {}", error.code().message()),
                          core::exit_status::kRunFailed);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Watch::stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  find_signs();
}

void Watch::find_signs() {
  std::error_code error;
  fs::directory_iterator at(folder_, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string end_of_name = at->path().extension().string();
    const auto pid =
        core::parse_number<pid_t>(std::string_view(end_of_name).substr(end_of_name.empty() ? 0 : 1));
    if (pid) take_word(*pid, "report \n");
  }
}

void Watch::go_on() try {
  using std::chrono::milliseconds;
  // Processes are looked at often while CUDA may be starting, and rarely later.
  constexpr milliseconds kFirst{2};
  constexpr milliseconds kAfterNews{10};
  constexpr milliseconds kSlowest{250};
  milliseconds pause = kFirst;
  std::chrono::steady_clock::time_point next = std::chrono::steady_clock::now() + pause;
  std::array<pollfd, 2> ready{{{stop_.get(), POLLIN, 0}, {fd_.get(), POLLIN, 0}}};
  while (ready.front().revents == 0) {
    const auto wait = std::chrono::ceil<milliseconds>(next - std::chrono::steady_clock::now());
    poll(ready.data(), ready.size(), static_cast<int>(std::max<milliseconds::rep>(wait.count(), 0)));
    receive();
    if (std::chrono::steady_clock::now() < next) continue;
    pause = scan() ? kAfterNews : std::min(kSlowest, pause + pause / 2);
    next = std::chrono::steady_clock::now() + pause;
  }
  receive();
} catch (...) {
  failure_ = std::current_exception();
}

void Watch::receive() {
  // A process that has connected may not have sent yet: its connection is looked at again.
  for (int fd = 0; fd_ && (fd = accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
    callers_.emplace_back(fd);
  std::erase_if(callers_, [this](const files::Descriptor& fd) {
    // The kernel says which process it is, in our pid namespace: what the text says may be another
    // container's number.
    ucred sender{};
    socklen_t size = sizeof sender;
    std::array<char, 4096 + 64> text{};  // a path and a word
    const bool known = getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &sender, &size) == 0;
    const ssize_t got = recv(fd.get(), text.data(), text.size(), 0);
    if (got < 0 && errno == EAGAIN && callers_.size() < kMaxCallers) return false;
    if (got > 0 && known) take_word(sender.pid, {text.data(), static_cast<std::size_t>(got)});
    return true;
  });
}

void Watch::take_word(pid_t pid, std::string_view said) {
  alive_.insert(pid);
  constexpr std::string_view kAsked = "asked ";
  if (said.starts_with(kAsked))
    if (const auto version = core::first_number<int>(said.substr(kAsked.size()))) asked_[pid] = *version;
  constexpr std::string_view kReport = "report ";
  if (said.starts_with(kReport) && said.ends_with('\n') && announced_.size() < kMaxAnnounced)
    announced_.push_back({pid, said.substr(kReport.size(), said.size() - kReport.size() - 1)});
}

bool Watch::scan() {
  bool news = false;
  for (const pid_t pid : descendants(getpid())) news = look_at(pid) || news;
  return news;
}

bool Watch::look_at(pid_t pid) {
  const std::string proc = fmt::format("/proc/{}", pid);
  std::error_code error;
  const std::string exe = fs::read_symlink(proc + "/exe", error).string();
  if (error) return false;  // it ended, or belongs to another user
  static const std::string own = fs::read_symlink("/proc/self/exe", error).string();
  if (exe == own) return false;  // between fork and exec
  Seen& seen = seen_[pid];
  const bool news = seen.exe != exe;
  if (news) {  // new, or after exec
    seen = {.exe = exe, .settled = false};
    const std::string reason = device_code::blind_reason(exe);
    unreachable_.erase(pid);
    cleared_.erase(pid);
    if (!reason.empty()) unreachable_[pid] = {.pid = pid, .exe = exe, .reason = reason};
  }
  if (seen.settled) return false;
  std::string maps = read_file(proc + "/maps");
  // The kernel writes the list while the process changes it, and since 6.17 without holding it up: a line may
  // be missing once. Nobody is called blind by a single look.
  constexpr int kLooks = 4;
  for (int i = 1; i < kLooks && names_driver_alone(maps); ++i) maps = read_file(proc + "/maps");
  if (seen.shim || contains(maps, "/libkshim.so")) {
    alive_.insert(pid);
    seen.shim = true;
    if (!contains(maps, "/libcuda.so")) return news;
    seen.settled = true;
    if (inherited_driver(pid, maps)) return news;
    const MappedCode code = mapped_code(maps);
    silent_[pid] = {.exe = exe, .files = code.files, .namespaces = code.c_libraries > 1};
  } else if (const auto variables = files::read_up_to(proc + "/environ", kMaxEnvironment);
             variables && !maps.empty() && !contains(*variables, "libkshim.so")) {
    // Of CMD itself it counts: it was started with the shim, and has gone on as another program (env -i).
    cleared_[pid] = {.pid = pid, .exe = exe, .reason = std::string(kCleared)};
  }
  if (!seen.shim && (contains(maps, "/libcuda.so") || contains(maps, "/libcudart.so"))) {
    // ld.so maps preloads first, so one that is to come would be there.
    blind_[pid] = {.pid = pid, .exe = exe, .reason = reason_of(pid, exe)};
    seen.settled = true;
  }
  return news;
}

std::vector<BlindProcess> Watch::blind(pid_t child, const fs::path& program, bool nothing_recorded) const {
  std::vector<BlindProcess> found;
  if (alive_.count(child) == 0 && blind_.count(child) == 0) {
    std::string reason = device_code::blind_reason(program);
    // Without a socket nobody could call: a child that ended between two looks may have had the shim.
    if (reason.empty() && fd_)
      reason = "it ended before the loader had loaded libkshim.so, or it dropped LD_PRELOAD";
    if (!reason.empty())
      found.push_back(
          {.pid = child, .exe = fs::absolute(program).lexically_normal().string(), .reason = reason});
  }
  for (const auto& [pid, process] : blind_) found.push_back(process);
  if (!nothing_recorded) return found;
  if (const auto cleared = cleared_.find(child);
      cleared != cleared_.end() && !contains(core::mapped(found, &BlindProcess::pid), child))
    found.push_back(cleared->second);
  for (const auto& [pid, process] : unreachable_)
    if (!contains(core::mapped(found, &BlindProcess::pid), process.pid)) found.push_back(process);
  return found;
}

std::string Watch::exe_of(pid_t pid) const {
  const auto seen = seen_.find(pid);
  return seen != seen_.end() ? seen->second.exe : std::string();
}

std::set<pid_t> Watch::reported_of(const std::vector<fs::path>& reports) const {
  std::set<pid_t> reported;
  for (const fs::path& report : reports) add_processes(report, reported);
  for (const Announced& each : announced_) reported.insert(each.pid);
  return reported;
}

std::vector<diagnose::IdleProcess> Watch::idle(pid_t child, const fs::path& program,
                                               const std::vector<fs::path>& reports) const {
  const std::set<pid_t> reported = reported_of(reports);
  std::vector<diagnose::IdleProcess> out;
  for (const auto& [pid, version] : asked_) {
    if (reported.count(pid) != 0) continue;
    std::string exe = exe_of(pid);
    if (exe.empty() && pid == child) exe = fs::absolute(program).lexically_normal().string();
    out.push_back({pid, exe, image::Version::from_cuda_number(version)});
  }
  return out;
}

std::vector<std::string> Watch::silent(const std::vector<fs::path>& reports) const {
  // A driver that only Python's packages can have asked for, and that is used for nothing, is what
  // `import torch` leaves behind.
  const std::set<pid_t> reported = reported_of(reports);
  std::size_t silent = 0;
  std::string exe;
  std::string file;
  bool namespaces = false;
  for (const auto& [pid, process] : silent_) {
    if (reported.count(pid) != 0 || asked_.count(pid) != 0) continue;
    const auto by = std::ranges::find_if(process.files, [&each = process](const std::string& path) {
      return (each.namespaces || !is_of_python_package(path)) && names_driver(path);
    });
    // Where no file names the driver, a script does (PHP).
    if (by == process.files.end() && std::ranges::any_of(process.files, names_driver)) continue;
    if (silent++ == 0) {
      exe = process.exe;
      file = by == process.files.end() ? "what its script opened" : *by;
    }
    namespaces = namespaces || process.namespaces;
  }
  if (silent == 0) return {};
  return {
      fmt::format("{}{} loaded libcuda.so.1, but libkshim.so saw no call to it: either there was "
                  "none, or {}; {} may have made some",
                  exe,
                  silent == 1   ? ""
                  : silent == 2 ? " and another process"
                                : fmt::format(" and {} other processes", silent - 1),
                  namespaces ? "it came from another namespace of the dynamic linker (dlmopen)"
                             : "the caller was loaded with RTLD_DEEPBIND (try `kshim run --audit`)",
                  file)};
}

Elsewhere find_announced(const std::vector<Announced>& announced, const std::vector<fs::path>& known,
                         const std::function<std::string(pid_t)>& exe_of) {
  Elsewhere out;
  std::size_t lost = 0;
  std::unordered_set<std::string> seen;
  for (const fs::path& path : known) seen.insert(normal(path).string());
  for (const Announced& each : announced) {
    const fs::path path = each.path.empty() ? fs::path() : normal(each.path);
    if (!path.empty() && !seen.insert(path.string()).second) continue;
    std::error_code error;
    if (!path.empty() && !fs::is_symlink(path, error) && verbs::is_report(path)) {
      out.reports.push_back(path);
    } else if (++lost <= kMaxLost) {
      out.lost.push_back({.pid = each.pid, .exe = exe_of(each.pid), .reason = why_lost(path)});
    }
  }
  if (lost > kMaxLost)
    out.lost.back().reason +=
        fmt::format("; and {} more processes whose reports are not there", lost - kMaxLost);
  return out;
}

void announce(const std::vector<fs::path>& reports) {
  const char* outer = std::getenv("KSHIM_RUN_SOCKET");
  if (outer == nullptr || *outer == '\0') return;
  for (const fs::path& report : reports) {
    const std::string text = "report " + normal(report).string() + "\n";
    if (const files::Descriptor fd = connect_to(outer))
      send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace kshim::run
