// SPDX-License-Identifier: Apache-2.0
#include "memory/host_room.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/log.h"

namespace kshim::sim {
namespace {

constexpr std::size_t kLargeFrom = std::size_t{64} << 20;
constexpr std::uint64_t kLeftAlone = std::uint64_t{256} << 20;  ///< for the rest of the host
constexpr std::uintptr_t kPage = 4096;

/// The number in a file, behind `label` where there is one; `otherwise` where there is no number.
std::uint64_t number_in(const char* path, const char* label, std::uint64_t otherwise) noexcept {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return otherwise;
  char line[256];
  std::uint64_t found = otherwise;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, label, std::strlen(label)) != 0) continue;
    unsigned long long value = 0;
    if (std::sscanf(line + std::strlen(label), "%llu", &value) == 1) found = value;
    break;
  }
  std::fclose(file);
  return found;
}

std::uint64_t bytes_left() noexcept {
  const std::uint64_t kib = number_in("/proc/meminfo", "MemAvailable:", UINT64_MAX >> 10);
  std::uint64_t left = kib << 10;
  // A container sees its own group here.
  const std::uint64_t most = number_in("/sys/fs/cgroup/memory.max", "", UINT64_MAX);
  const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current", "", 0);
  if (most != UINT64_MAX) left = std::min(left, most > used ? most - used : 0);
  return left > kLeftAlone ? left - kLeftAlone : 0;
}

/// Bytes of the range that are in memory already.
std::uint64_t resident(std::uintptr_t at, std::size_t size) noexcept {
  unsigned char in_memory[4096];
  std::uint64_t pages = 0;
  for (std::uintptr_t next = at & ~(kPage - 1); next < at + size; next += sizeof in_memory * kPage) {
    const std::size_t count = std::min((at + size - next + kPage - 1) / kPage, sizeof in_memory);
    if (::mincore(reinterpret_cast<void*>(next), count * kPage, in_memory) != 0) return 0;
    pages += static_cast<std::uint64_t>(
        std::count_if(in_memory, in_memory + count, [](unsigned char each) { return (each & 1) != 0; }));
  }
  return pages * kPage;
}

void say_once(std::atomic_flag& said, const std::string& text) {
  if (!said.test_and_set())
    log_line(LogLevel::warn,
             text +
                 " No kernel runs here: a size that a kernel should have computed is whatever its memory "
                 "held.");
}

}  // namespace

CUresult check_host_room(std::uintptr_t at, std::size_t size) noexcept {
  if (size < kLargeFrom) return CUDA_SUCCESS;
  const std::uint64_t left = bytes_left();
  const std::uint64_t all = number_in("/proc/meminfo", "MemTotal:", UINT64_MAX >> 10) << 10;
  if (size <= left) return CUDA_SUCCESS;
  if (size <= all && size - std::min<std::uint64_t>(size, resident(at, size)) <= left) return CUDA_SUCCESS;
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  say_once(said, "writing " + std::to_string(size) +
                     " bytes is refused with 2 (out of memory): this machine has " + std::to_string(left) +
                     " left for simulated memory.");
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void say_beyond_device(std::size_t size, std::uint64_t device_bytes) noexcept {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  say_once(said, "an allocation of " + std::to_string(size) +
                     " bytes is larger than the whole device, which has " + std::to_string(device_bytes) +
                     ".");
}

}  // namespace kshim::sim
