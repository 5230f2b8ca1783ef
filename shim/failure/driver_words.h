// SPDX-License-Identifier: Apache-2.0
// What the driver itself says of a failure: the log of its JIT compiler, where the caller asked for one, and
// with KSHIM_DRIVER_LOG its error log (CUDA 12.9 and later).
#pragma once
#include <cstddef>
#include <string_view>

#include "cuda/call_args.h"
#include "guest/text_buffer.h"

namespace kshim::shim {

using JitLog = Text<4096>;

/// The text in the buffer that the call's options name (CU_JIT_ERROR_LOG_BUFFER), as far as it can be read.
void read_jit_log(const CallArgs& call, JitLog& out) noexcept;

/// Copies the newest lines of the driver's error log, if the option is on; asks the driver (ScopedQuestion).
/// Registers no callback, and leaves the log as it is.
class DriverLog {
 public:
  /// `code`: what the call answered. Where the driver refused it before it looked, it is not asked: a child
  /// of fork would wait for a lock that a thread of its parent holds. Nor is it in a signal handler: what was
  /// interrupted may be the driver, and hold the lock.
  DriverLog(abi::Result code, bool in_handler) noexcept;
  ~DriverLog();
  DriverLog(const DriverLog&) = delete;
  DriverLog& operator=(const DriverLog&) = delete;
  std::string_view text() const noexcept { return {memory_, size_}; }

 private:
  static constexpr std::size_t kRoom = 4096;
  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kshim::shim
