// SPDX-License-Identifier: Apache-2.0
// PTX text: .version, .target, entries, parameters, globals. A scanner, not a compiler: comments and strings
// are skipped, directives outside function bodies are read. Views, no heap.
#pragma once
#include <cstdint>
#include <string_view>

#include "kshim/image/cubin.h"
#include "kshim/image/image.h"

namespace kshim::image {

class PtxReader {
 public:
  PtxReader() = default;
  /// Accepts text with or without a terminating NUL. Errc::malformed_text without `.version` and `.target`.
  static Result<PtxReader> open(Bytes bytes) noexcept;
  Arch target() const noexcept { return target_; }  ///< `.target sm_90a`: 9.0, a
  Version isa() const noexcept { return isa_; }
  /// Whether all blocks are closed and the last word ends a function or a statement: false for a text that
  /// was cut off, unless the cut is between two functions, which looks like a shorter text.
  bool ends_well() const noexcept;
  /// Entries in order; `cursor` starts at 0 and is a byte offset. Errc::not_found at the end. registers are
  /// unknown.
  Result<KernelInfo> next_kernel(std::uint64_t& cursor) const noexcept;
  /// As next_kernel(), but skips bodies and parameters, for programs that need only the names: reads name and
  /// max_threads.
  Result<KernelInfo> next_brief(std::uint64_t& cursor) const noexcept;
  Result<ParameterInfo> parameter(std::string_view kernel, std::uint32_t ordinal) const noexcept;
  /// Module-scope .global and .const variables with a size; initial values are not evaluated.
  Result<GlobalInfo> next_global(std::uint64_t& cursor) const noexcept;

 private:
  std::string_view text_;
  Arch target_;
  Version isa_;
};

}  // namespace kshim::image
