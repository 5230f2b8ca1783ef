// SPDX-License-Identifier: Apache-2.0
// The native stack of the calling thread, by LLVM's libunwind (static, hidden: the host's unwinder is never
// touched).
#pragma once
#include <cstdint>
#include <span>

#include "guest/text_buffer.h"
#include "kshim/report/writer.h"

namespace kshim::shim {

/// Whether a signal handler is among the innermost frames of the calling thread. Under the shim's lock.
bool is_in_signal_handler() noexcept;

/// About 16 KiB: keep it in the State, under the shim's lock.
class NativeStack {
 public:
  static constexpr std::size_t kMaxFrames = 64;
  /// Innermost first, without the shim's own frames. `offset` is the link-time address the call returns to.
  /// The command finds symbols in the files. `symbol`, from the dynamic symbol table, is set where the file
  /// is temporary or deleted and, with `name_kernel`, for the innermost frames: the host stub among them
  /// carries the kernel's name. A bounded number of blocks is read for that. Texts live until the next
  /// capture. Frames outside of every file (JIT code) have no object and their address as offset.
  void capture(bool name_kernel = false) noexcept;
  void clear() noexcept { count_ = 0; }
  std::span<const report::FrameRow> rows() const noexcept { return {rows_, count_}; }

 private:
  void name_frames(std::size_t first, std::size_t kernel_frames, std::size_t& reads) noexcept;

  report::FrameRow rows_[kMaxFrames] = {};
  Text<40> build_ids_[kMaxFrames] = {};
  std::uintptr_t addresses_[kMaxFrames] = {};
  std::size_t count_ = 0;
  char names_[8192] = {};
  std::size_t names_used_ = 0;
};

}  // namespace kshim::shim
