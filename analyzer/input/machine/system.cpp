// SPDX-License-Identifier: Apache-2.0
// The operating system: what people ask for first in an issue.
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include "analyzer/input/machine/gather.h"

namespace kshim::doctor {
namespace {

/// "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36." stands in libc.so.6 itself.
std::string glibc_of(const Machine& machine, const Loader& loader) {
  if (machine.live()) return gnu_get_libc_version();
  const auto found = loader.find("libc.so.6");
  if (!found) return {};
  constexpr std::size_t kMost = std::size_t{8} << 20;
  constexpr std::string_view kMark = "stable release version ";
  const std::string text = machine.read(found->path, kMost);
  const std::size_t at = text.find(kMark);
  if (at == std::string::npos) return {};
  const std::size_t end = text.find_first_not_of("0123456789.", at + kMark.size());
  std::string version = text.substr(at + kMark.size(), end - at - kMark.size());
  while (version.ends_with('.')) version.pop_back();
  return version;
}

}  // namespace

std::string pretty_name(std::string_view os_release) {
  for (const std::string& line : split(os_release, "\n")) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    std::string_view value = trim(std::string_view(line).substr(kKey.size()));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return {};
}

System look_at_system(const Machine& machine, const Loader& loader) {
  System out;
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"})
    if (out.os.empty()) out.os = pretty_name(machine.read(file));
  out.glibc = glibc_of(machine, loader);
  struct utsname name {};
  if (machine.live() && ::uname(&name) == 0) {
    out.kernel = name.release;
    out.machine = name.machine;
  }
  return out;
}

}  // namespace kshim::doctor
