// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/fatbin_search.h"

#include <gtest/gtest.h>

#include "fatbin_builder.h"

namespace kshim::image {
namespace {

using test::Buffer;

constexpr std::uint64_t kStart = 0x0010'0001'0000'0000ULL | kFatbinMagic;

TEST(FatbinSearch, FindsAHeaderOnEveryMultipleOfEight) {
  for (std::size_t size = 8; size <= 1200; size += 4) {
    for (std::size_t at = 0; at + 8 <= size; at += 8) {
      Buffer bytes(size, std::byte{0x50});
      test::put(bytes, at, kStart);
      EXPECT_EQ(find_fatbin(bytes, 0), at) << size;
      EXPECT_EQ(find_fatbin(bytes, at), at) << size;
      EXPECT_EQ(find_fatbin(bytes, at + 1), size) << size;
      if (at != 0) {
        EXPECT_EQ(find_fatbin(bytes, at - 1), at) << size;
      }
    }
  }
}

TEST(FatbinSearch, FindsTheFirst) {
  Buffer bytes(4096);
  for (const std::size_t at : {512U, 520U, 4088U}) test::put(bytes, at, kStart);
  EXPECT_EQ(find_fatbin(bytes, 0), 512U);
  EXPECT_EQ(find_fatbin(bytes, 513), 520U);
  EXPECT_EQ(find_fatbin(bytes, 521), 4088U);
}

TEST(FatbinSearch, PassesOverWhatIsNoHeader) {
  Buffer bytes(4096, std::byte{0x50});
  for (const std::size_t at : {4U, 260U, 1001U, 4092U})
    test::put(bytes, at, kFatbinMagic);                                         // no multiple of 8
  test::put(bytes, 2048, kFatbinMagic);                                         // the magic alone
  test::put(bytes, 3000, std::uint64_t{0x0010'0002'0000'0000} | kFatbinMagic);  // another version
  test::put(bytes, 3303, kStart);
  EXPECT_EQ(find_fatbin(bytes, 0), bytes.size());
}

TEST(FatbinSearch, ReadsMemoryAtAnyAddress) {
  Buffer bytes(2048 + 1);
  test::put(bytes, 1 + 1024, kStart);
  EXPECT_EQ(find_fatbin(Bytes(bytes).subspan(1), 0), 1024U);
}

TEST(FatbinSearch, OfLittleOrNothingFindsNothing) {
  const Buffer bytes(7);
  EXPECT_EQ(find_fatbin({}, 0), 0U);
  EXPECT_EQ(find_fatbin(bytes, 0), 7U);
  EXPECT_EQ(find_fatbin(bytes, 100), 7U);
  const Buffer longer(64);
  EXPECT_EQ(find_fatbin(longer, 64), 64U);
  EXPECT_EQ(find_fatbin(longer, UINT64_MAX), 64U);
}

}  // namespace
}  // namespace kshim::image
