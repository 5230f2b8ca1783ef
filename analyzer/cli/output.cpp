// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "analyzer/core/user_error.h"

namespace kshim::cli {

Output::Output(std::string path, int stream, int status)
    : path_(std::move(path)), fd_(stream), status_(status) {
  if (path_.empty()) return;
  fd_ = -1;
  errno = 0;
  find();
  if (errno == 0) return;
  const int error = errno;
  if (fd_ >= 0) close(fd_);
  const char* why = error == ELOOP ? "is a link; name the file itself" : std::strerror(error);
  throw UserError(fmt::format("--output {}: cannot write there: {}", path_, why), status_);
}

Output::~Output() {
  if (!is_stream() && fd_ >= 0) close(fd_);
}

/// Leaves errno at 0, or says why not.
void Output::find() {
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  append_ = summary != nullptr && path_ == summary;
  if (append_) {
    fd_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode_);
    if (fd_ >= 0) errno = 0;
    return;
  }
  struct stat there {};
  const std::size_t slash = path_.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (lstat(path_.c_str(), &there) != 0) {
    if (errno != ENOENT) return;
    errno = slash + 1 == path_.size() ? EISDIR : 0;
    if (errno != 0 || faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return;
    folder_ = std::move(folder);
    return;
  }
  // /dev/stdout and /dev/fd/3 are links too, to what is open already.
  const bool stream = path_.starts_with("/dev/") || path_.starts_with("/proc/");
  struct stat target {};
  const bool device = stat(path_.c_str(), &target) == 0 && !S_ISREG(target.st_mode);
  fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC | (stream || device ? 0 : O_NOFOLLOW));
  if (fd_ < 0) return;
  errno = 0;
  // A new file would have another owner, or leave the other names of the old one behind.
  if (stream || device || there.st_uid != geteuid() || there.st_nlink != 1) return;
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) folder_ = std::move(folder);
  mode_ = there.st_mode & 0777;
  errno = 0;
}

bool Output::is_same_file(const std::string& path) const {
  struct stat mine {};
  struct stat theirs {};
  return !is_stream() && fd_ >= 0 && fstat(fd_, &mine) == 0 && stat(path.c_str(), &theirs) == 0 &&
         mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

std::string Output::first_bytes(std::size_t most) const {
  struct stat mine {};
  if (is_stream() || fd_ < 0 || fstat(fd_, &mine) != 0 || !S_ISREG(mine.st_mode)) return {};
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string out(most, '\0');
  const ssize_t size = pread(fd, out.data(), out.size(), 0);
  close(fd);
  out.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return out;
}

void Output::write(std::string_view text) {
  if (!folder_.empty() && replace(text)) return;
  if (fd_ < 0) fail();
  if (!is_stream() && !append_ && ftruncate(fd_, 0) != 0 && errno != EINVAL)
    fail();  // EINVAL: a pipe or a device
  write_to(fd_, text);
}

/// False where the folder takes no new file; errno says why.
bool Output::replace(std::string_view text) const {
  constexpr unsigned kTries = 100;
  std::string name;
  int fd = -1;
  for (unsigned i = 0; i < kTries && fd < 0 && (i == 0 || errno == EEXIST); ++i) {
    name = fmt::format("{}{}.kshim-{}-{}", folder_, folder_.ends_with('/') ? "" : "/", getpid(), i);
    fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_);
  }
  if (fd < 0) return false;
  try {
    if (fd_ >= 0) fchmod(fd, mode_);  // whatever the umask is now
    write_to(fd, text);
  } catch (...) {
    close(fd);
    unlink(name.c_str());
    throw;
  }
  // Where the folder is another machine's, only closing says that it is full.
  if (close(fd) == 0 && rename(name.c_str(), path_.c_str()) == 0) return true;
  const int error = errno;
  unlink(name.c_str());
  errno = error;
  fail();
}

void Output::write_to(int fd, std::string_view text) const {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      if (fd != STDERR_FILENO) fail();
      return;  // nobody is there to be told
    }
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

void Output::fail() const {
  const std::string where = is_stream() ? "stdout" : fmt::format("--output {}", path_);
  throw UserError(fmt::format("{}: cannot write: {}", where, std::strerror(errno)), status_);
}

}  // namespace kshim::cli
