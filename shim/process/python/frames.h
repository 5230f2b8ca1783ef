// SPDX-License-Identifier: Apache-2.0
// Reads Python frames without the GIL. CPython 3.8 to 3.15. The calling thread's frames do not change while
// it is inside a native call. All reads are guarded (safe_memory.h), and the type of each object is checked.
// If a check fails, the stack is left empty.
#pragma once
#include <cstdint>
#include <span>

#include "kshim/report/writer.h"

namespace kshim::shim {

/// About 20 KiB: keep it in the State, under the shim's lock.
class PythonStack {
 public:
  static constexpr std::size_t kMaxFrames = 64;
  /// Innermost first; true when there is at least one frame. `function` is the qualified name where Python
  /// keeps one (3.11), else the name.
  bool capture_this_thread() noexcept;
  /// The main thread's frames, for a failure on another one. False on the main thread itself.
  bool capture_main_thread() noexcept;
  void clear() noexcept { count_ = 0, text_used_ = 0; }
  std::span<const report::PythonRow> rows() const noexcept { return {rows_, count_}; }

 private:
  friend class FrameWalk;
  report::PythonRow rows_[kMaxFrames] = {};
  char text_[16384] = {};
  std::size_t count_ = 0;
  std::size_t text_used_ = 0;
};

}  // namespace kshim::shim
