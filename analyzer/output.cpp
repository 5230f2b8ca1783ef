// SPDX-License-Identifier: Apache-2.0
#include "analyzer/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "analyzer/user_error.h"

namespace kshim::cli {

Output::Output(std::string path, int stream, int status)
    : path_(std::move(path)), fd_(stream), status_(status) {
  if (path_.empty()) return;
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw UserError(fmt::format("--output {}: cannot write there: {}", path_, std::strerror(errno)), status_);
  }
}

Output::~Output() {
  if (!is_stream()) close(fd_);
}

bool Output::is_same_file(const std::string& path) const {
  struct stat mine {};
  struct stat theirs {};
  return !is_stream() && fstat(fd_, &mine) == 0 && stat(path.c_str(), &theirs) == 0 &&
         mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

void Output::write(std::string_view text) {
  if (!is_stream() && ftruncate(fd_, 0) != 0 && errno != EINVAL) fail();  // EINVAL: a pipe or a device
  while (!text.empty()) {
    const ssize_t done = ::write(fd_, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      if (fd_ != STDERR_FILENO) fail();
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
