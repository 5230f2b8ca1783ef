// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <functional>

namespace kshim::scan {

bool is_of(Bytes file, Bytes part) {
  const auto within = [&](const std::byte* at) {
    return std::less_equal<>()(file.data(), at) && std::less_equal<>()(at, file.data() + file.size());
  };
  return within(part.data()) && within(part.data() + part.size());
}

void let_go(Bytes passed) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));  // aarch64: up to 64 KiB
  const auto begin = (reinterpret_cast<std::uintptr_t>(passed.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(passed.data() + passed.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace kshim::scan
