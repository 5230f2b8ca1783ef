// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/output.h"

#include <sys/sysmacros.h>

#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "kshim/report/libc_calls.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::cli {
namespace {

constexpr const char* kNull = "/dev/null";

/// What /dev/stdout, /dev/stderr and /dev/fd/N stand for.
std::optional<int> open_descriptor_of(std::string_view path) {
  constexpr std::string_view kNumbered = "/dev/fd/";
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  if (!path.starts_with(kNumbered)) return std::nullopt;
  const auto number = core::parse_number<int>(path.substr(kNumbered.size()));
  return number.value_or(-1) < 0 ? std::nullopt : number;
}

}  // namespace

Output::Output(std::string path, int stream, int status)
    : path_(std::move(path)), stream_(stream), status_(status) {
  if (path_.empty()) return;
  const std::optional<int> open = open_descriptor_of(path_);
  if (!open && path_ != kNull) {
    find();
    return;
  }
  fd_ = files::Descriptor(open ? fcntl(*open, F_DUPFD_CLOEXEC, 0)
                               : ::open(kNull, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!fd_ || fstat(fd_.get(), &info) != 0) refuse(std::strerror(errno));
  if (!open && !(S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3))) refuse("it is not the null device");
}

void Output::refuse(std::string_view why) const {
  throw core::UserError(fmt::format("--output {}: cannot write there: {}", path_, why), status_);
}

void Output::find() {
  const std::size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  if (name_.empty() || name_ == "." || name_ == "..") refuse(std::strerror(EISDIR));
  using Walk = report::FolderWalk<report::LibcCalls>;
  int fd = -1;
  if (const int error = Walk::open(folder, {}, fd); error != 0)
    refuse(error == ELOOP ? "a link on the way belongs to another user" : std::strerror(error));
  folder_ = files::Descriptor(fd);

  // O_PATH: to open a device is to use it, to open a FIFO is to wait.
  const files::Descriptor entry(openat(fd, name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!entry && errno != ENOENT) refuse(std::strerror(errno));
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  const bool append = summary != nullptr && path_ == summary;
  present_ = entry && fstat(entry.get(), &there_) == 0;
  if (entry && (!append || !S_ISREG(there_.st_mode))) find_present(entry.get());
  if (append) {
    // The caller's environment names this file, and a container's root does not own the runner's.
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    fd_ = files::Descriptor(openat(fd, name_.c_str(), kFlags, 0644));
    struct stat info {};
    if (!fd_ || fstat(fd_.get(), &info) != 0) refuse(std::strerror(errno));
    if (!S_ISREG(info.st_mode)) refuse("is not a file");
  } else if (!fd_ && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    // Written beside and then renamed: there is no other way that leaves no half file and no race.
    refuse(fmt::format("no file can be made in its folder: {}", std::strerror(errno)));
  }
}

/// Judges what has the name: throws, or leaves a FIFO open in fd_.
void Output::find_present(int entry) {
  if (S_ISLNK(there_.st_mode)) refuse("is a link; name the file itself");
  if (S_ISDIR(there_.st_mode)) refuse(std::strerror(EISDIR));
  if (!S_ISREG(there_.st_mode) && !S_ISFIFO(there_.st_mode)) refuse("is a device or a socket");
  if (there_.st_uid != geteuid()) refuse("belongs to another user");
  if (S_ISREG(there_.st_mode)) return;
  // By the descriptor: by its name it could be something else by now.
  fd_ = files::Descriptor(
      open(fmt::format("/proc/self/fd/{}", entry).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd_) refuse(errno == ENXIO ? "nobody reads from this FIFO" : std::strerror(errno));
  const int flags = fcntl(fd_.get(), F_GETFL);
  if (flags < 0 || fcntl(fd_.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) refuse(std::strerror(errno));
}

bool Output::is_same_file(const std::string& path) const {
  struct stat theirs {};
  return present_ && stat(path.c_str(), &theirs) == 0 && there_.st_dev == theirs.st_dev &&
         there_.st_ino == theirs.st_ino;
}

void Output::refuse_inputs(const std::vector<std::string>& paths, std::string_view what) const {
  for (const std::string& path : paths)
    if (is_same_file(path)) throw core::UserError(fmt::format("--output {}: is one of {}", path, what));
}

std::string Output::first_bytes(std::size_t most) const {
  if (!present_ || !S_ISREG(there_.st_mode)) return {};
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const files::Descriptor fd(openat(folder_.get(), name_.c_str(), kFlags));
  std::string out(most, '\0');
  const ssize_t size = pread(fd.get(), out.data(), out.size(), 0);
  out.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return out;
}

void Output::write(std::string_view text) {
  if (!is_stream() && !fd_) return replace(text);
  on_stall({});  // a pager may take its time
  write_to(is_stream() ? stream_ : fd_.get(), text);
}

void Output::replace(std::string_view text) const {
  constexpr unsigned kTries = 100;
  constexpr unsigned kNewMode = 0644;  // a daemon's umask of 0 lets nobody else write to it
  std::string name;
  files::Descriptor file;
  for (unsigned i = 0; i < kTries && !file && (i == 0 || errno == EEXIST); ++i) {
    name = fmt::format(".kshim-{}-{}", getpid(), i);
    // Nobody else reads it before it has the rights of the file that it replaces.
    file = files::Descriptor(openat(folder_.get(), name.c_str(),
                                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                    present_ ? 0600 : kNewMode));
  }
  if (!file) fail(errno);
  try {
    if (present_) {
      struct stat made {};
      unsigned mode = there_.st_mode & 0777U;
      // Rights of a group are that group's.
      if (fstat(file.get(), &made) != 0 ||
          (made.st_gid != there_.st_gid && fchown(file.get(), uid_t(-1), there_.st_gid) != 0))
        mode &= ~070U;
      if (fchmod(file.get(), mode) != 0) fail(errno);
    }
    write_to(file.get(), text);
  } catch (...) {
    unlinkat(folder_.get(), name.c_str(), 0);
    throw;
  }
  // Where the folder is another machine's, only closing says that it is full. renameat replaces a link that
  // has the name by now, it does not follow it.
  if (close(file.release()) == 0 && renameat(folder_.get(), name.c_str(), folder_.get(), name_.c_str()) == 0)
    return;
  const int error = errno;
  unlinkat(folder_.get(), name.c_str(), 0);
  fail(error);
}

void Output::write_to(int fd, std::string_view text) const {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      if (fd != STDERR_FILENO) fail(errno);
      return;  // nobody is there to be told
    }
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

void Output::fail(int error) const {
  const std::string where = is_stream() ? "stdout" : fmt::format("--output {}", path_);
  throw core::UserError(fmt::format("{}: cannot write: {}", where, std::strerror(error)), status_);
}

}  // namespace kshim::cli
