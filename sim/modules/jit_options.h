// SPDX-License-Identifier: Apache-2.0
// Options of cuModuleLoadDataEx, cuLibraryLoadData and cuLinkCreate: only the log buffers mean anything where
// nothing is compiled. The others are accepted.
#pragma once
#include <string_view>

#include "base/driver_api.h"

namespace kshim::sim {

struct JitOptions {
  unsigned count = 0;
  const CUjit_option* options = nullptr;
  void** values = nullptr;  ///< sizes of logs are written back here
  bool valid() const noexcept { return count == 0 || (options != nullptr && values != nullptr); }
};

/// Fills CU_JIT_ERROR_LOG_BUFFER with `error` and empties CU_JIT_INFO_LOG_BUFFER; sizes become what was
/// written.
void write_logs(const JitOptions& options, std::string_view error) noexcept;

}  // namespace kshim::sim
