// SPDX-License-Identifier: Apache-2.0
#include "kshim/base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace kshim {
namespace {

constexpr std::array<std::byte, 8> kData{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                         std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}};

TEST(Slice, TakesWhatIsThere) {
  EXPECT_EQ(slice(kData, 0, 8)->size(), 8U);
  EXPECT_EQ(slice(kData, 8, 0)->size(), 0U);
  EXPECT_EQ(slice(kData, 2, 3)->front(), std::byte{3});
}

TEST(Slice, RefusesWhatIsNot) {
  for (const auto& [offset, size] : {std::pair<std::uint64_t, std::uint64_t>{0, 9},
                                     {8, 1},
                                     {9, 0},
                                     {1, UINT64_MAX},
                                     {UINT64_MAX, 1},
                                     {UINT64_MAX, UINT64_MAX}}) {
    const auto part = slice(kData, offset, size);
    ASSERT_FALSE(part.ok()) << offset << ' ' << size;
    EXPECT_EQ(part.error().code, Errc::truncated);
    EXPECT_EQ(part.error().offset, offset);
  }
}

TEST(ReadLe, ReadsUnaligned) {
  EXPECT_EQ(*read_le<std::uint32_t>(kData, 1), 0x05040302U);
  EXPECT_EQ(*read_le<std::uint16_t>(kData, 6), 0x0807U);
}

TEST(ReadLe, RefusesWhatCrossesTheEnd) {
  EXPECT_EQ(read_le<std::uint32_t>(kData, 5).error().code, Errc::truncated);
  EXPECT_EQ(read_le<std::uint64_t>(kData, UINT64_MAX - 3).error().code, Errc::truncated);
  EXPECT_EQ(read_le<std::uint8_t>({}, 0).error().code, Errc::truncated);
}

TEST(Errc, EveryCodeHasItsOwnPhrase) {
  std::vector<std::string_view> seen;
#define KSHIM_ERROR(name, text) seen.push_back(describe(Errc::name));
#include "kshim/base/errors.def"
#undef KSHIM_ERROR
  for (std::size_t i = 0; i < seen.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(seen[i], seen[j]);
  EXPECT_EQ(describe(Errc::truncated), std::string_view("ends before the structure it announces"));
}

TEST(Result, ValueOr) {
  EXPECT_EQ(Result<int>(3).value_or(4), 3);
  EXPECT_EQ(Result<int>(Error{Errc::not_found}).value_or(4), 4);
}

}  // namespace
}  // namespace kshim
