// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/left_behind.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

void remove_dead_sockets(const fs::path& folder) {
  constexpr std::size_t kMost = 10'000;
  std::error_code error;
  std::size_t count = 0;
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && ++count < kMost;
       entry.increment(error)) {
    struct stat info {};
    if (entry->path().filename().string().starts_with("kshim-run-") &&
        lstat(entry->path().c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
        is_left_behind(entry->path()))
      left.push_back(entry->path());
  }
  for (const fs::path& path : left) fs::remove_all(path, error);
}

void remove_empty_runs(const fs::path& folder) {
  constexpr std::size_t kMost = 10'000;
  std::error_code error;
  std::vector<fs::path> left;
  std::size_t count = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && ++count < kMost;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::size_t dash = name.rfind('-');
    pid_t pid = 0;
    if (dash == std::string::npos || dash != std::string_view("20260101-000000").size()) continue;
    const auto [rest, bad] = std::from_chars(name.data() + dash + 1, name.data() + name.size(), pid);
    if (bad != std::errc() || rest != name.data() + name.size() || pid <= 0) continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) left.push_back(entry->path());
  }
  for (const fs::path& path : left) rmdir(path.c_str());  // fails where there is something in it
}

}  // namespace kshim::cli
