// SPDX-License-Identifier: Apache-2.0
// ld.so.cache as ldconfig writes it, damaged in every way that its bounds allow.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "analyzer/input/machine/facts.h"
#include "tests/support/command_names.h"

namespace {

using namespace kshim::test;

#if defined(__x86_64__)
constexpr std::uint32_t kFlags = 0x0303;
#else
constexpr std::uint32_t kFlags = 0x0a03;
#endif

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8U) out += static_cast<char>(value);
}

std::string cache_of(std::uint32_t flags, std::uint64_t hardware = 0) {
  const std::string strings = std::string("libcuda.so.1") + '\0' + "/usr/lib/libcuda.so.1" + '\0';
  std::string out = "glibc-ld.so.cache1.1";
  put(out, 1, 4);
  put(out, strings.size(), 4);
  put(out, 0, 20);
  put(out, flags, 4);
  put(out, 48 + 24, 4);
  put(out, 48 + 24 + 13, 4);
  put(out, 0, 4);
  put(out, hardware, 8);
  return out + strings;
}

TEST(LinkerCache, NamesAndPaths) {
  const auto found = read_cache(cache_of(kFlags));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.at("libcuda.so.1"), "/usr/lib/libcuda.so.1");
}

TEST(LinkerCache, BehindTheOldTable) {
  EXPECT_EQ(read_cache("ld.so-1.7.0" + std::string(29, '\0') + cache_of(kFlags)).size(), 1U);
}

TEST(LinkerCache, OthersAreLeftOut) {
  EXPECT_TRUE(read_cache(cache_of(0x0003)).empty());               // 32 bits
  EXPECT_TRUE(read_cache(cache_of(kFlags, 1ULL << 62U)).empty());  // for a processor's extensions
}

TEST(LinkerCache, EveryCutAndEveryFlippedByteIsSurvived) {
  const std::string whole = cache_of(kFlags);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(read_cache(whole.substr(0, size)).empty());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    for (const auto& [name, path] : read_cache(damaged)) EXPECT_EQ(path.front(), '/') << name;
  }
}

TEST(LibraryNames, VersionsAndKinds) {
  EXPECT_EQ(version_in_name("/x/libcuda.so.580.82.07"), "580.82.07");
  EXPECT_EQ(version_in_name("/x/libcuda.so.1"), "");
  EXPECT_EQ(version_in_name("/x.so.7/libfoo"), "");
  EXPECT_TRUE(is_cuda_library("libcudart.so.13"));
  EXPECT_TRUE(is_cuda_library("libcuda.so.1"));
  EXPECT_FALSE(is_cuda_library("libcudf.so"));
  EXPECT_FALSE(is_cuda_library("libc.so.6"));
}

}  // namespace
