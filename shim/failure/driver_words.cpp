// SPDX-License-Identifier: Apache-2.0
#include "failure/driver_words.h"

#include <algorithm>

#include "cuda/next_symbol.h"
#include "guest/options.h"
#include "guest/reentry_guard.h"
#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "report/report_file.h"
#include "track/device_code.h"

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

DriverLog::DriverLog(abi::Result code, bool in_handler) noexcept {
  using Dump = int (*)(unsigned* iterator, char* buffer, std::size_t* size, unsigned flags);
  if (!options().driver_log || load_result(code) == LoadResult::refused || in_handler ||
      is_forked_from_report())
    return;
  const ScopedQuestion question;
  if (!question) return;
  const auto dump = reinterpret_cast<Dump>(driver_function("cuLogsDumpToMemory"));
  if (dump == nullptr) return;
  memory_ = static_cast<char*>(raw::map_memory(kRoom));
  if (memory_ == nullptr) return;
  // Without an iterator all of it; where the room is too small, the newest.
  std::size_t size = kRoom - 1;
  if (dump(nullptr, memory_, &size, 0) != 0) return;
  size_ = std::min(std::string_view(memory_, kRoom).find('\0'), std::min(size, kRoom));
}

DriverLog::~DriverLog() {
  if (memory_ != nullptr) raw::unmap_memory(memory_, kRoom);
}

}  // namespace kshim::shim
