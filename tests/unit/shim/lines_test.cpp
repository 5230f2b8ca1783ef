// SPDX-License-Identifier: Apache-2.0
// Line tables by hand, where the interpreters of this machine do not reach: torn tables, entries without a
// line. The rest is compared with the interpreters themselves (python_frames_test.py).
#include "process/python/lines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kshim::shim {
namespace {

using Table = std::vector<std::uint8_t>;

std::optional<std::uint64_t> line(LineTable kind, const Table& table, std::int64_t offset) {
  return line_of(kind, TableReader(reinterpret_cast<std::uintptr_t>(table.data()), table.size()), 10, offset);
}

TEST(Lines, Lnotab) {
  const Table table{4, 1, 6, 5, 0, 200, 2, 0xFF};  // +200 as a signed byte goes back 56 lines
  EXPECT_EQ(line(LineTable::lnotab, table, 0), 10U);
  EXPECT_EQ(line(LineTable::lnotab, table, 4), 11U);
  EXPECT_EQ(line(LineTable::lnotab, table, 9), 11U);
  EXPECT_EQ(line(LineTable::lnotab, {4, 1, 6, 5}, 100), 16U);
  EXPECT_EQ(line(LineTable::lnotab, table, 10), std::nullopt) << "a line before the file's first";
}

TEST(Lines, Pairs) {
  const Table table{4, 0, 6, 0x80, 2, 3};
  EXPECT_EQ(line(LineTable::pairs, table, 2), 10U);
  EXPECT_EQ(line(LineTable::pairs, table, 4), std::nullopt) << "marked as having none";
  EXPECT_EQ(line(LineTable::pairs, table, 10), 13U);
  EXPECT_EQ(line(LineTable::pairs, table, 12), std::nullopt) << "past the end";
}

TEST(Lines, Locations) {
  const Table table{
      0x80 | 0 << 3 | 1,  0x00,                         // short form, two units, same line
      0x80 | 12 << 3 | 0, 0x01, 0x02,                   // one-line form, +2
      0x80 | 15 << 3 | 0,                               // no location
      0x80 | 13 << 3 | 0, 0x03,                         // no columns, -1
      0x80 | 14 << 3 | 7, 0x48, 0x02, 0x01, 0x01, 0x01  // long form, eight units, +68
  };
  EXPECT_EQ(line(LineTable::locations, table, 0), 10U);
  EXPECT_EQ(line(LineTable::locations, table, 2), 10U);
  EXPECT_EQ(line(LineTable::locations, table, 4), 12U);
  EXPECT_EQ(line(LineTable::locations, table, 6), std::nullopt);
  EXPECT_EQ(line(LineTable::locations, table, 8), 11U);
  EXPECT_EQ(line(LineTable::locations, table, 24), 79U);
  EXPECT_EQ(line(LineTable::locations, table, 26), std::nullopt);
}

TEST(Lines, TornOrMissingTablesHaveNoLine) {
  for (const LineTable kind : {LineTable::pairs, LineTable::locations}) {
    EXPECT_EQ(line(kind, {}, 0), std::nullopt);
    EXPECT_EQ(line(kind, {0xF0}, 0), std::nullopt);
    EXPECT_EQ(line_of(kind, TableReader(16, 100), 10, 0), std::nullopt) << "memory that is not there";
  }
  EXPECT_EQ(line(LineTable::locations, {0x7F, 0x00}, 0), std::nullopt) << "an entry without its mark";
}

}  // namespace
}  // namespace kshim::shim
