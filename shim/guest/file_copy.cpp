// SPDX-License-Identifier: Apache-2.0
#include "guest/file_copy.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

/// A large copy uses up part of the host's limits, which another thread of the host may need.
bool is_modest(std::size_t size) noexcept {
  constexpr std::size_t kSmall = std::size_t{16} << 20U;
  constexpr rlim_t kShare = 16;
  if (size <= kSmall) return true;
  for (const int which : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (raw::get_limit(which, limit) != 0) continue;
    if (limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur / kShare) return false;
  }
  return true;
}

}  // namespace

FileCopy::FileCopy(const char* path) noexcept {
  struct stat facts {};
  file_ = open_regular_file(path);
  if (!file_ || raw::status_of(file_.get(), facts) != 0 || facts.st_size <= 0) return;
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (!is_modest(size)) return;
  // Pages that are never written use no memory.
  void* memory = raw::map_memory(size, MAP_NORESERVE);
  if (memory == nullptr) return;
  memory_ = static_cast<std::byte*>(memory);
  size_ = size;
}

FileCopy::~FileCopy() {
  if (memory_ != nullptr) raw::unmap_memory(memory_, size_);
}

void FileCopy::fetch(std::uint64_t offset, std::uint64_t size) noexcept {
  if (offset >= size_ || (offset >= last_from_ && offset + size <= last_to_)) return;
  constexpr std::uint64_t kMin = 4096;  // small items are often close together
  std::uint64_t left = std::min<std::uint64_t>(std::max(size, kMin), size_ - offset);
  last_from_ = offset;
  last_to_ = offset + left;
  while (left > 0) {
    const std::size_t got = file_.read(offset, memory_ + offset, static_cast<std::size_t>(left));
    if (got == 0) return;
    offset += got;
    left -= got;
  }
}

}  // namespace kshim::shim
