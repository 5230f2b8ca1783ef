// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/memory_limit.h"

#include <sys/resource.h>

#include <limits>

#include "analyzer/core/text.h"
#include "kshim/files/open_file.h"

namespace kshim::core {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxByDefault = 1'000'000'000;
constexpr std::size_t kSmallFile = 65536;

std::uint64_t g_limit = kMaxByDefault;
rlimit g_before{RLIM_INFINITY, RLIM_INFINITY};
bool g_limited = false;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// The number behind `name` in a file of lines; kUnlimited where there is none. Without a name the whole
/// file.
std::uint64_t number_of(const std::string& path, std::string_view name) {
  const std::optional<std::string> text = files::read_up_to(path, kSmallFile);
  if (!text) return kUnlimited;
  std::size_t at = name.empty() ? 0 : text->find(name);
  if (at == std::string::npos) return kUnlimited;
  at = text->find_first_not_of(" \t", at + name.size());
  if (at == std::string::npos) return kUnlimited;
  return first_number<std::uint64_t>(std::string_view(*text).substr(at)).value_or(kUnlimited);
}

/// What the groups of this process (cgroup v2, or the memory controller of v1) leave it.
std::uint64_t free_in_groups() {
  const std::optional<std::string> groups = files::read_up_to("/proc/self/cgroup", kSmallFile);
  if (!groups) return kUnlimited;
  struct Version {
    std::string_view marker, folder, most, used;
  };
  constexpr Version kVersions[] = {
      {"0::", "/sys/fs/cgroup", "memory.max", "memory.current"},
      {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}};
  std::uint64_t out = kUnlimited;
  for (const Version& version : kVersions) {
    const std::size_t at = groups->find(version.marker);
    if (at == std::string::npos) continue;
    const std::size_t start = at + version.marker.size();
    std::string group = groups->substr(start, groups->find('\n', start) - start);
    // Its own and those around it; in a container the path may be the host's, and the folder its own.
    for (bool last = false; !last;) {
      last = group.empty() || group == "/";
      const std::string folder = fmt::format("{}{}/", version.folder, last ? "" : group);
      const std::uint64_t most = number_of(folder + std::string(version.most), {});
      const std::uint64_t used = number_of(folder + std::string(version.used), {});
      if (most != kUnlimited && used != kUnlimited) out = std::min(out, most > used ? most - used : 0);
      group.resize(last ? 0 : group.rfind('/'));
    }
  }
  return out;
}

}  // namespace

std::uint64_t default_memory() {
  constexpr std::uint64_t kKilobyte = 1024;
  const std::uint64_t kilobytes = number_of("/proc/meminfo", "MemAvailable:");
  const std::uint64_t free =
      std::min(kilobytes == kUnlimited ? kUnlimited : kilobytes * kKilobyte, free_in_groups());
  return std::max(std::min(kMaxByDefault, free / 2), kMinMemory);
}

void limit_memory(std::uint64_t bytes) {
  g_limit = bytes;
  if (kSanitized || ::getrlimit(RLIMIT_DATA, &g_before) != 0) return;
  rlimit limit = g_before;
  limit.rlim_cur = std::min({limit.rlim_cur, limit.rlim_max, static_cast<rlim_t>(bytes)});
  g_limited = ::setrlimit(RLIMIT_DATA, &limit) == 0;
}

// The kernel counts addresses, and hardly any of a stack's are used.
void allow_threads(std::size_t count) {
  rlimit stack{};
  rlimit limit{};
  constexpr rlim_t kOrdinaryStack = rlim_t{8} << 20;
  if (!g_limited || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY)
    stack.rlim_cur = kOrdinaryStack;
  limit.rlim_cur = std::min({g_before.rlim_cur, limit.rlim_max, limit.rlim_cur + count * stack.rlim_cur});
  ::setrlimit(RLIMIT_DATA, &limit);
}

std::uint64_t memory_limit() noexcept { return g_limit; }

void lift_memory_limit() noexcept {
  if (g_limited) ::setrlimit(RLIMIT_DATA, &g_before);
}

std::string no_memory_clause() {
  return fmt::format("needs more than {} of memory (--max-memory)", size_text(g_limit));
}

}  // namespace kshim::core
