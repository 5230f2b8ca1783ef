// SPDX-License-Identifier: Apache-2.0
#include "file_copy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "system_calls.h"

namespace kshim::shim {

FileCopy::FileCopy(const char* path) noexcept {
  file_ = raw::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts {};
  if (file_ < 0 || raw::status_of(file_, facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0) return;
  const auto size = static_cast<std::size_t>(facts.st_size);
  // Pages that nobody fetches take no memory.
  void* memory = raw::map_memory(size, MAP_NORESERVE);
  if (memory == nullptr) return;
  memory_ = static_cast<std::byte*>(memory);
  size_ = size;
}

FileCopy::~FileCopy() {
  if (memory_ != nullptr) raw::unmap_memory(memory_, size_);
  if (file_ >= 0) raw::close_file(file_);
}

void FileCopy::fetch(std::uint64_t offset, std::uint64_t size) noexcept {
  if (offset >= size_ || (offset >= last_from_ && offset + size <= last_to_)) return;
  constexpr std::uint64_t kLeast = 4096;  // small things often stand close together
  std::uint64_t left = std::min<std::uint64_t>(std::max(size, kLeast), size_ - offset);
  last_from_ = offset;
  last_to_ = offset + left;
  while (left > 0) {
    const ssize_t got = raw::read_at(file_, memory_ + offset, static_cast<std::size_t>(left), offset);
    if (got <= 0) return;
    offset += static_cast<std::uint64_t>(got);
    left -= static_cast<std::uint64_t>(got);
  }
}

}  // namespace kshim::shim
