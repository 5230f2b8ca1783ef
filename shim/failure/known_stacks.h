// SPDX-License-Identifier: Apache-2.0
// Which failures have a stack of their own in the report. A runtime that loads hundreds of modules in one
// call fails hundreds of times from the same place: the frames are written once, later records name the
// first.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "kshim/report/writer.h"

namespace kshim::shim {

/// A hash of all that a record says of the frames, in order; 0 where there are none. Of 1024 stacks that
/// differ, two have the same one about once in 2^45 reports.
std::uint64_t identity_of(std::span<const report::FrameRow> rows) noexcept;
std::uint64_t identity_of(std::span<const report::PythonRow> rows) noexcept;

/// Of one report and one kind of stack. Under the shim's lock.
class KnownStacks {
 public:
  static constexpr std::size_t kMax = 1024;  ///< failures
  /// The id of the failure whose record has these frames; none where no record has, and for no frames.
  std::optional<std::uint64_t> find(std::uint64_t identity) const noexcept;
  /// The record is in the report, with its frames: one that could not be written is never named.
  void add(std::uint64_t identity, std::uint64_t failure) noexcept;
  void clear() noexcept;

 private:
  std::uint64_t identities_[kMax] = {};  ///< by id, from 1
  std::size_t count_ = 0;
};

}  // namespace kshim::shim
