// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/unguessable.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <span>

namespace kshim::cli {
namespace {

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

std::string unguessable_name() {
  std::array<unsigned char, 6> bytes{};  // 48 bits; a sun_path is short
  if (!fill_randomly(bytes)) return {};
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace kshim::cli
