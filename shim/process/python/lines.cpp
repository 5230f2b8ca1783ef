// SPDX-License-Identifier: Apache-2.0
#include "process/python/lines.h"

#include <algorithm>

#include "guest/safe_memory.h"

namespace kshim::shim {
namespace {

using Line = std::optional<std::uint64_t>;

Line as_line(std::int64_t line) noexcept {
  return line > 0 ? Line(static_cast<std::uint64_t>(line)) : std::nullopt;
}

std::int64_t signed_byte(std::uint8_t byte) noexcept { return static_cast<std::int8_t>(byte); }

// 3.8 and 3.9 (Objects/lnotab_notes.txt): pairs of instruction and line increments; the line in force at an
// offset is the sum of those up to it.
Line line_of_lnotab(TableReader table, std::int64_t line, std::int64_t offset) noexcept {
  std::int64_t at = 0;
  for (;;) {
    const auto step = table.next();
    const auto lines = table.next();
    if (!step || !lines) return as_line(line);
    at += *step;
    if (at > offset) return as_line(line);
    line += signed_byte(*lines);
  }
}

// 3.10 (PEP 626): pairs of a range's length and its line's difference; -128 marks a range without a line.
Line line_of_pairs(TableReader table, std::int64_t line, std::int64_t offset) noexcept {
  constexpr std::int64_t kNoLine = -128;
  std::int64_t end = 0;
  for (;;) {
    const auto length = table.next();
    const auto lines = table.next();
    if (!length || !lines) return {};
    const std::int64_t difference = signed_byte(*lines);
    if (difference != kNoLine) line += difference;
    end += *length;
    if (offset < end) return difference == kNoLine ? Line() : as_line(line);
  }
}

// From 3.11 (Objects/locations.md): entries that begin with 1cccclll, c = kind, l = length - 1 in code units.
constexpr unsigned kOneLineFirst = 10;
constexpr unsigned kOneLineLast = 12;
constexpr unsigned kNoColumns = 13;
constexpr unsigned kLong = 14;
constexpr unsigned kNoLocation = 15;

/// Six bits a byte, the lowest first, 0x40 = more follows; the lowest bit of the whole is the sign.
std::optional<std::int64_t> signed_varint(TableReader& table) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 36; shift += 6) {
    const auto byte = table.next();
    if (!byte) return {};
    value |= static_cast<std::uint64_t>(*byte & 0x3FU) << shift;
    if ((*byte & 0x40U) != 0) continue;
    const auto magnitude = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -magnitude : magnitude;
  }
  return {};
}

Line line_of_locations(TableReader table, std::int64_t line, std::int64_t offset) noexcept {
  constexpr std::int64_t kCodeUnit = 2;
  std::int64_t end = 0;
  for (;;) {
    const auto head = table.next();
    if (!head || (*head & 0x80U) == 0) return {};
    const unsigned kind = (*head >> 3U) & 15U;
    end += ((*head & 7) + 1) * kCodeUnit;
    if (kind == kNoColumns || kind == kLong) {
      const auto difference = signed_varint(table);
      if (!difference) return {};
      line += *difference;
    } else if (kind >= kOneLineFirst && kind <= kOneLineLast) {
      line += kind - kOneLineFirst;
    }
    if (offset < end) return kind == kNoLocation ? Line() : as_line(line);
    while (const auto next = table.peek()) {  // columns
      if ((*next & 0x80U) != 0) break;
      table.next();
    }
  }
}

}  // namespace

bool TableReader::fill() noexcept {
  const std::size_t size = std::min(left_, sizeof block_);
  if (size == 0 || !read_memory(address_, block_, size)) return false;
  address_ += size;
  left_ -= size;
  at_ = 0;
  filled_ = size;
  return true;
}

std::optional<std::uint8_t> TableReader::peek() noexcept {
  if (at_ == filled_ && !fill()) return {};
  return block_[at_];
}

std::optional<std::uint8_t> TableReader::next() noexcept {
  const auto byte = peek();
  if (byte) ++at_;
  return byte;
}

std::optional<std::uint64_t> line_of(LineTable kind, TableReader table, std::int64_t first_line,
                                     std::int64_t offset) noexcept {
  switch (kind) {
    case LineTable::lnotab:
      return line_of_lnotab(table, first_line, offset);
    case LineTable::pairs:
      return line_of_pairs(table, first_line, offset);
    case LineTable::locations:
      return line_of_locations(table, first_line, offset);
  }
  return {};
}

}  // namespace kshim::shim
