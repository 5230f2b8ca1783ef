// SPDX-License-Identifier: Apache-2.0
#include "failure/jit_log.h"

#include <algorithm>

#include "guest/safe_memory.h"

namespace kshim::shim {

void read_jit_log(const CallArgs& call, JitLog& out) noexcept {
  constexpr unsigned kMaxOptions = 64;
  constexpr int kErrorLog = 5;      // CU_JIT_ERROR_LOG_BUFFER
  constexpr int kErrorLogSize = 6;  // its size; the driver puts there how much of it it has filled
  std::uintptr_t buffer = 0;
  std::uintptr_t size = 0;
  for (unsigned i = 0; i < std::min(call.jit_count, kMaxOptions); ++i) {
    int option = 0;
    std::uintptr_t value = 0;
    if (!read_memory(call.jit_options + i * sizeof option, &option, sizeof option) ||
        !read_memory(call.jit_values + i * sizeof value, &value, sizeof value))
      return;
    if (option == kErrorLog) buffer = value;
    if (option == kErrorLogSize) size = static_cast<unsigned>(value);
  }
  if (buffer == 0) return;
  char part[256];
  for (std::uintptr_t done = 0; done < size && !out.full(); done += sizeof part) {
    const std::size_t length = std::min<std::uintptr_t>(sizeof part, size - done);
    if (!read_memory(buffer + done, part, length)) return;
    const std::string_view text(part, length);
    const std::size_t end = text.find('\0');
    out << text.substr(0, end);
    if (end != std::string_view::npos) return;
  }
}

}  // namespace kshim::shim
