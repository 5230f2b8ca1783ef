// SPDX-License-Identifier: Apache-2.0
// The shim's own memory functions, under other names (freestanding_mem_probe.c), beside libc's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
void* own_memcpy(void* to, const void* from, size_t size);
void* own_memmove(void* to, const void* from, size_t size);
void* own_memset(void* to, int value, size_t size);
void* own_memcpy_chk(void* to, const void* from, size_t size, size_t room);
int own_memcmp(const void* left, const void* right, size_t size);
void* own_memchr(const void* in, int value, size_t size);
size_t own_strlen(const char* text);
size_t own_strnlen(const char* text, size_t size);
int own_strncmp(const char* left, const char* right, size_t size);
}

namespace {

constexpr std::size_t kMax = 70;

std::vector<unsigned char> numbered(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 1);
  return bytes;
}

TEST(FreestandingMem, CopyThatOverflowsIsClamped) {
  for (std::size_t room = 0; room < 40; ++room)
    for (const std::size_t over : {std::size_t{0}, std::size_t{1}, std::size_t{9}, std::size_t{30}}) {
      const std::vector<unsigned char> from = numbered(kMax);
      std::vector<unsigned char> to(kMax, 0xEE);
      EXPECT_EQ(own_memcpy_chk(to.data(), from.data(), room + over, room), to.data());
      EXPECT_TRUE(std::equal(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(room), from.begin()));
      EXPECT_TRUE(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(room), to.end(),
                              [](unsigned char byte) { return byte == 0xEE; }))
          << room << " bytes of room, " << room + over << " copied";
    }
}

TEST(FreestandingMem, CopiesLikeLibc) {
  const std::vector<unsigned char> from = numbered(kMax);
  for (std::size_t size = 0; size <= kMax; ++size) {
    std::vector<unsigned char> own(kMax + 1, 0);
    std::vector<unsigned char> libc(kMax + 1, 0);
    own_memcpy(own.data(), from.data(), size);
    std::memcpy(libc.data(), from.data(), size);
    EXPECT_EQ(own, libc) << size;
    own_memset(own.data(), 0x1A5, size);
    std::memset(libc.data(), 0xA5, size);
    EXPECT_EQ(own, libc) << size;
  }
}

TEST(FreestandingMem, MovesOverlappingBytesLikeLibc) {
  for (std::size_t from = 0; from < 20; ++from)
    for (std::size_t to = 0; to < 20; ++to)
      for (std::size_t size = 0; size < 40; ++size) {
        std::vector<unsigned char> own = numbered(kMax);
        std::vector<unsigned char> libc = own;
        own_memmove(own.data() + to, own.data() + from, size);
        std::memmove(libc.data() + to, libc.data() + from, size);
        EXPECT_EQ(own, libc) << from << " to " << to << ", " << size;
      }
}

TEST(FreestandingMem, ComparesAndSearchesLikeLibc) {
  const std::string text = "kernel\0name\xff\x01";
  const std::string all(text.data(), 13);
  for (std::size_t left = 0; left < all.size(); ++left)
    for (std::size_t right = 0; right < all.size(); ++right) {
      const std::size_t size = all.size() - std::max(left, right);
      const auto sign = [](int value) { return (value > 0) - (value < 0); };
      EXPECT_EQ(sign(own_memcmp(all.data() + left, all.data() + right, size)),
                sign(std::memcmp(all.data() + left, all.data() + right, size)));
      EXPECT_EQ(sign(own_strncmp(all.data() + left, all.data() + right, size)),
                sign(std::strncmp(all.data() + left, all.data() + right, size)));
    }
  for (const int value : {0, int{'k'}, int{'z'}, 0xff, 0x16b})
    EXPECT_EQ(own_memchr(all.data(), value, all.size()), std::memchr(all.data(), value, all.size()));
  // Bytes that differ from the wanted one in a single bit, or by one, before it and behind it.
  const std::string near("\x81\x7f\x01\xff\x80\x82\0\x81\x80\x01\x7f\xff\x80\0\x81\x80\x80\x7f\xfe", 19);
  for (std::size_t from = 0; from < near.size(); ++from)
    for (std::size_t size = 0; from + size <= near.size(); ++size)
      for (int value = 0; value < 256; ++value)
        ASSERT_EQ(own_memchr(near.data() + from, value, size), std::memchr(near.data() + from, value, size))
            << from << " " << size << " " << value;
  EXPECT_EQ(own_strlen(all.c_str()), 6U);
  EXPECT_EQ(own_strnlen(all.c_str(), 3), 3U);
  EXPECT_EQ(own_strnlen(all.c_str(), 9), 6U);
}

}  // namespace
