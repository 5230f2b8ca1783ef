// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/announced.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <unordered_set>

#include "analyzer/run/run_folder.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLost = 10;

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
             : fmt::format("{}, where its report was, is none", path.string());
}

}  // namespace

Elsewhere find_announced(const std::vector<Announced>& announced, const std::vector<fs::path>& known,
                         const std::function<std::string(pid_t)>& exe_of) {
  Elsewhere out;
  std::size_t lost = 0;
  std::unordered_set<std::string> seen;
  for (const fs::path& path : known) seen.insert(normal(path).string());
  for (const Announced& each : announced) {
    const fs::path path = each.path.empty() ? fs::path() : normal(each.path);
    if (!path.empty() && !seen.insert(path.string()).second) continue;
    if (!path.empty() && is_report(path)) {
      out.reports.push_back(path);
    } else if (++lost <= kMostLost) {
      out.lost.push_back({.pid = each.pid, .exe = exe_of(each.pid), .reason = why_lost(path)});
    }
  }
  if (lost > kMostLost)
    out.lost.back().reason +=
        fmt::format("; and {} more processes whose reports are not there", lost - kMostLost);
  return out;
}

void announce(const std::vector<fs::path>& reports) {
  const char* outer = std::getenv("KSHIM_RUN_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (outer == nullptr || *outer == '\0' || std::strlen(outer) >= sizeof address.sun_path) return;
  std::strcpy(address.sun_path, outer);
  for (const fs::path& report : reports) {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    const std::string text = "report " + normal(report).string() + "\n";
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
  }
}

}  // namespace kshim::cli
