// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/unnamed_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace kshim::scan {

bool UnnamedFile::create() {
  close();
  // /tmp is often memory itself.
  const char* folder = ::secure_getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/var/tmp";
  fd_ = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ >= 0) return true;
  std::string name = std::string(folder) + "/kshim-XXXXXX";  // a file system without O_TMPFILE
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ >= 0) ::unlink(name.c_str());
  return fd_ >= 0;
}

void UnnamedFile::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool UnnamedFile::append(Bytes bytes) const {
  while (!bytes.empty()) {
    const ssize_t size = ::write(fd_, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  return true;
}

std::filesystem::path UnnamedFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

}  // namespace kshim::scan
