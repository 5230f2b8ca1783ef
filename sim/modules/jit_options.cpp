// SPDX-License-Identifier: Apache-2.0
#include "modules/jit_options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kshim::sim {
namespace {

void write_log(const JitOptions& options, CUjit_option buffer, CUjit_option buffer_size,
               std::string_view text) noexcept {
  char* out = nullptr;
  void** size = nullptr;
  for (unsigned i = 0; i < options.count; ++i) {
    if (options.options[i] == buffer) out = static_cast<char*>(options.values[i]);
    if (options.options[i] == buffer_size) size = &options.values[i];
  }
  if (size == nullptr) return;
  // The value itself is the number, passed as a pointer.
  const auto room = static_cast<std::size_t>(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(*size)));
  std::size_t written = 0;
  if (out != nullptr && room != 0) {
    const std::size_t length = std::min(text.size(), room - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
    written = length == 0 ? 0 : length + 1;
  }
  *size = reinterpret_cast<void*>(written);
}

}  // namespace

void write_logs(const JitOptions& options, std::string_view error) noexcept {
  if (!options.valid()) return;
  write_log(options, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
  write_log(options, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, {});
}

}  // namespace kshim::sim
