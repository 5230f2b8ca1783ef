// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/fatbin_search.h"

#include <gtest/gtest.h>

#include "fatbin_builder.h"

namespace kshim::image {
namespace {

using test::Buffer;

constexpr std::uint64_t kStart = 0x0010'0001'0000'0000ULL | kFatbinMagic;

TEST(FatbinSearch, FindsAHeaderAnywhere) {
  for (std::size_t size = 8; size <= 600; size += size < 300 ? 1 : 37) {
    for (std::size_t at = 0; at + 8 <= size; ++at) {
      Buffer bytes(size, std::byte{0x50});
      test::put(bytes, at, kStart);
      for (const auto find : {find_fatbin, find_fatbin_or_cubin}) {
        ASSERT_EQ(find(bytes, 0), at) << size;
        ASSERT_EQ(find(bytes, at), at) << size;
        ASSERT_EQ(find(bytes, at + 1), size) << size;
        if (at != 0) {
          ASSERT_EQ(find(bytes, at - 1), at) << size;
        }
      }
    }
  }
}

TEST(FatbinSearch, FindsTheFirst) {
  Buffer bytes(4096);
  for (const std::size_t at : {511U, 520U, 4088U}) test::put(bytes, at, kStart);
  EXPECT_EQ(find_fatbin(bytes, 0), 511U);
  EXPECT_EQ(find_fatbin(bytes, 512), 520U);
  EXPECT_EQ(find_fatbin(bytes, 521), 4088U);
}

TEST(FatbinSearch, FindsCubinsAndNoOtherElfFiles) {
  const auto header = [](Buffer& bytes, std::size_t at, std::uint16_t machine) {
    test::put(bytes, at, std::uint64_t{0x4101'0102'464c'457f});
    test::put(bytes, at + 18, machine);
  };
  for (std::size_t at = 0; at < 300; ++at) {
    Buffer bytes(512);
    header(bytes, at, 190);
    ASSERT_EQ(find_fatbin_or_cubin(bytes, 0), at);
    ASSERT_EQ(find_fatbin(bytes, 0), bytes.size());
    header(bytes, at, 62);
    ASSERT_EQ(find_fatbin_or_cubin(bytes, 0), bytes.size());
  }
  Buffer cut(25);
  header(cut, 5, 190);
  for (std::size_t size = 13; size < 25; ++size)
    EXPECT_EQ(find_fatbin_or_cubin(Bytes(cut).first(size), 0), size) << "the machine is cut off";
  EXPECT_EQ(find_fatbin_or_cubin(cut, 0), 5U);
}

TEST(FatbinSearch, PassesOverWhatIsNoHeader) {
  Buffer bytes(4096, std::byte{0x50});
  for (const std::size_t at : {4U, 260U, 1001U, 2048U, 4092U})
    test::put(bytes, at, kFatbinMagic);                                         // the magic alone
  test::put(bytes, 3000, std::uint64_t{0x0010'0002'0000'0000} | kFatbinMagic);  // another version
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
