// SPDX-License-Identifier: Apache-2.0
// The driver's error log (CUDA 12.9 and later), with KSHIM_DRIVER_LOG=1: why a call failed, in the driver's
// words. The driver calls back on the thread whose call fails, before that call returns; the lines wait in a
// buffer of that thread until the failure is recorded.
#pragma once
#include <cstddef>
#include <string_view>

#include "cuda/cuda_abi.h"

namespace kshim::shim {

/// CUlogsCallback.
using LogCallback = void (*)(void* data, abi::Enum level, char* message, std::size_t length);

/// A line of the log without what differs each time: [22:21:32.099][25642].
std::string_view message_of(std::string_view line) noexcept;

/// Registers the callback with the driver that is loaded now, once. Does nothing where the option is off or
/// the driver has no such log. Asks the driver (ScopedQuestion).
void listen_to_driver() noexcept;
/// Takes it back, at the end of the process. A handler calls nothing here: what it interrupted may hold the
/// lock of the driver's log.
void stop_listening(bool in_handler) noexcept;

/// Keeps a line of this thread's. Whether its call has said all, or may have (before CUDA 13.4 no line is the
/// last).
bool keep_line(std::string_view line) noexcept;
/// Memory for that. Asks for it once.
bool prepare_lines() noexcept;

/// What the driver has said on this thread since the last failure that was recorded. While one lives, the
/// lines stay as they are.
class DriverLines {
 public:
  DriverLines() noexcept;
  /// Drops the lines, if a failure has got some.
  ~DriverLines();
  DriverLines(const DriverLines&) = delete;
  DriverLines& operator=(const DriverLines&) = delete;
  /// Of the last refused call of this function.
  std::string_view of(std::string_view function) noexcept;
  /// Of the last refused call.
  std::string_view last() noexcept;
  /// The same, if it is said to have returned `code`.
  std::string_view returning(abi::Result code) noexcept;

 private:
  struct Buffer* buffer_;
  bool taken_ = false;
};

}  // namespace kshim::shim
