// SPDX-License-Identifier: Apache-2.0
#include "guest/file_copy.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "guest/own_file.h"
#include "guest/syscalls.h"

namespace kshim::shim {

FileCopy::FileCopy(const char* path, std::uint64_t most) noexcept {
  struct stat facts {};
  const OwnFile file = open_regular_file(path);
  if (!file || raw::status_of(file.get(), facts) != 0 || facts.st_size <= 0) return;
  size_ = static_cast<std::uint64_t>(facts.st_size);
  room_ = static_cast<std::size_t>(std::min(size_, most));
  memory_ = static_cast<std::byte*>(raw::map_memory(room_, MAP_NORESERVE));
  if (memory_ != nullptr) read_ = file.read_whole(memory_, room_);
}

FileCopy::~FileCopy() {
  if (memory_ != nullptr) raw::unmap_memory(memory_, room_);
}

}  // namespace kshim::shim
