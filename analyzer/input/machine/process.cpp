// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/machine/process.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/core/user_error.h"
#include "kshim/files/open_file.h"

namespace kshim::input {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxMaps = std::size_t{64} << 20;
constexpr std::size_t kMaxEnvironment = std::size_t{4} << 20;
constexpr std::string_view kDeleted = " (deleted)";

std::string open_here(const files::Descriptor& folder) {
  return fmt::format("/proc/self/fd/{}", folder.get());
}

std::string link_of(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

int pid_of(std::string_view text) {
  const auto pid = core::take_number<int>(text);
  if (!pid || *pid <= 0 || !text.empty())
    throw core::UserError(
        "--pid takes the number of one process, as `pgrep -f NAME` and `nvidia-smi` print it");
  return *pid;
}

/// proc_pid_maps(5) writes a newline in a name as \012.
std::string unescaped(std::string_view path) {
  std::string out(path);
  for (std::size_t at = out.find("\\012"); at != std::string::npos; at = out.find("\\012", at + 1))
    out.replace(at, 4, "\n");
  return out;
}

std::string user_name(uid_t uid) {
  const struct passwd* entry = ::getpwuid(uid);
  return entry != nullptr ? core::sanitize(entry->pw_name) : fmt::format("{}", uid);
}

}  // namespace

LiveProcess::LiveProcess(std::string_view pid) {
  facts_.pid = pid_of(pid);
  folder_ = files::Descriptor(
      ::open(fmt::format("/proc/{}", facts_.pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder_.get() < 0) refuse(errno);
  open_root();
  read_maps();
  std::map<std::string, std::string> variables;
  for (const std::string& entry : core::split(read("environ"), std::string_view("\0", 1)))
    if (const std::size_t mark = entry.find('='); mark != std::string::npos)
      variables.emplace(entry.substr(0, mark), entry.substr(mark + 1));
  machine_.emplace(root_, std::move(variables));
  facts_.program = link_of(open_here(folder_) + "/exe");
  if (!root_name_.empty() && facts_.program.starts_with(root_name_ + "/"))
    facts_.program.erase(0, root_name_.size());
}

void LiveProcess::refuse(int error) const {
  struct stat status {};
  const bool gone = error == ENOENT || error == ESRCH || ::fstat(folder_.get(), &status) != 0;
  std::string what;
  if (gone)
    what =
        "is not there: it has ended, or this is its number inside a container (`ps -e` on the host shows the "
        "other one)";
  else if (::geteuid() == 0)
    what = "cannot be read, even by root (in a container: without CAP_SYS_PTRACE): run kshim on the host";
  else if (status.st_uid != ::geteuid())
    what = fmt::format("belongs to user {}: run kshim as that user or as root", user_name(status.st_uid));
  else
    what = fmt::format("cannot be read ({}): run kshim as root", std::generic_category().message(error));
  throw core::UserError(fmt::format("process {} {}", facts_.pid, what), core::exit_status::kNoInput);
}

std::string LiveProcess::read(const char* name) const {
  const std::string path = open_here(folder_) + "/" + name;
  if (const files::OpenFile file = files::open_to_read(path); !file) refuse(file.error);
  errno = 0;
  const auto text = files::read_up_to(path, std::string_view(name) == "maps" ? kMaxMaps : kMaxEnvironment);
  if (!text) refuse(errno != 0 ? errno : ESRCH);
  return *text;
}

// Where the process has our root and our mounts, its paths are ours. Else the open folder is its root, also
// after its end.
void LiveProcess::open_root() {
  const std::string root = open_here(folder_) + "/root";
  root_folder_ = files::Descriptor(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root_folder_.get() < 0) refuse(errno);
  struct stat theirs {};
  struct stat ours {};
  if (::fstat(root_folder_.get(), &theirs) != 0 || ::stat("/", &ours) != 0) refuse(errno);
  const bool same_folder = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
  if (same_folder && link_of(open_here(folder_) + "/ns/mnt") == link_of("/proc/self/ns/mnt")) return;
  root_ = open_here(root_folder_);
  root_name_ = link_of(root);
  if (root_name_ == "/") root_name_.clear();
}

void LiveProcess::read_maps() {
  const std::string text = read("maps");
  if (text.empty()) {
    const std::string stat = read("stat");
    const std::size_t state = stat.rfind(") ");
    const bool zombie = state != std::string::npos && stat.substr(state + 2, 1) == "Z";
    throw core::UserError(
        fmt::format("process {} {}", facts_.pid,
                    zombie ? "has ended, and its parent has not collected it"
                           : "has no memory of its own: it is a thread of the kernel, or it has "
                             "just ended"),
        core::exit_status::kNoInput);
  }
  std::set<std::string> seen;
  for (const std::string& line : core::split(text, "\n")) {
    // 7f1c2000-7f1c3000 r-xp 00001000 08:02 135522 /usr/lib/libfoo.so
    const std::size_t slash = line.find(" /");
    if (slash == std::string::npos) continue;
    Mapping mapping{unescaped(std::string_view(line).substr(slash + 1)), line.substr(0, line.find(' '))};
    if (mapping.path.ends_with(kDeleted)) {
      mapping.deleted = true;
      mapping.path.resize(mapping.path.size() - kDeleted.size());
    }
    if (!root_name_.empty() && mapping.path.starts_with(root_name_ + "/"))
      mapping.path.erase(0, root_name_.size());
    if (!seen.insert(mapping.path).second) continue;
    facts_.mapped.push_back(mapping.path);
    mappings_.push_back(std::move(mapping));
  }
}

Inputs LiveProcess::code_files() const {
  Inputs out;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const Mapping& mapping : mappings_) {
    // What a process keeps in shared memory or has unlinked at once is no library.
    const bool library =
        core::contains(core::basename_of(mapping.path), ".so") || mapping.path == facts_.program;
    const fs::path file = mapping.deleted
                              ? fs::path(fmt::format("{}/map_files/{}", open_here(folder_), mapping.range))
                              : machine_->at(mapping.path);
    struct stat status {};
    if (file.empty() || ::stat(file.c_str(), &status) != 0) {
      if (library)
        out.notes.push_back({mapping.path, fmt::format("process {} has it mapped, and it was removed or "
                                                       "replaced since: it cannot be read",
                                                       facts_.pid)});
      continue;
    }
    if (!S_ISREG(status.st_mode) || (mapping.deleted && !library)) continue;
    std::array<std::byte, kFirstBytes> buffer;
    std::string why;
    const Bytes first = read_first(file, buffer, why);
    if (!why.empty() && library) out.notes.push_back({mapping.path, why});
    const auto bytes = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
    if (file_kind(first, {}, bytes) != FileKind::device_code) continue;
    if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
    out.files.push_back({.path = file, .bytes = bytes, .name = mapping.path});
  }
  return out;
}

}  // namespace kshim::input
