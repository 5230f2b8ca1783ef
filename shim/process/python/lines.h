// SPDX-License-Identifier: Apache-2.0
// Maps an instruction to its line, in the three formats of CPython's line tables.
#pragma once
#include <cstdint>
#include <optional>

#include "process/python/layout.h"

namespace kshim::shim {

/// A table in memory that may be unmapped, read in blocks.
class TableReader {
 public:
  TableReader(std::uintptr_t address, std::size_t size) noexcept : address_(address), left_(size) {}
  std::optional<std::uint8_t> next() noexcept;
  std::optional<std::uint8_t> peek() noexcept;

 private:
  bool fill() noexcept;
  std::uintptr_t address_;
  std::size_t left_;  ///< not yet read into block_
  std::uint8_t block_[512];
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
};

/// Line of the instruction at byte `offset` of the code; nothing where the table has none for it.
std::optional<std::uint64_t> line_of(LineTable kind, TableReader table, std::int64_t first_line,
                                     std::int64_t offset) noexcept;

}  // namespace kshim::shim
