// SPDX-License-Identifier: Apache-2.0
// Offsets of fields: Microsoft, "PE Format". Whole files with fatbins: analyzer/device_code_test.cpp.
#include "kshim/image/pe.h"

#include <gtest/gtest.h>

#include "byte_buffer.h"

namespace kshim::image {
namespace {

using test::Buffer;

constexpr std::size_t kPe = 0x100;
constexpr std::size_t kOptional = kPe + 24;
constexpr std::uint16_t kOptionalSize = 240;
constexpr std::size_t kSection = kOptional + kOptionalSize;

/// One section, ".nv_fatb", of 512 bytes at 0x400.
Buffer dll() {
  Buffer out(0x600);
  test::put(out, 0, std::uint16_t{0x5a4d});
  test::put(out, 0x3c, std::uint32_t{kPe});
  test::put(out, kPe, std::uint32_t{0x4550});
  test::put(out, kPe + 4, std::uint16_t{0x8664});
  test::put(out, kPe + 6, std::uint16_t{1});
  test::put(out, kPe + 20, kOptionalSize);
  test::put(out, kOptional, std::uint16_t{0x20b});
  test::put(out, kOptional + 24, std::uint64_t{0x180000000});
  std::memcpy(out.data() + kSection, ".nv_fatb", 8);
  test::put(out, kSection + 8, std::uint32_t{500});
  test::put(out, kSection + 12, std::uint32_t{0x5000});
  test::put(out, kSection + 16, std::uint32_t{512});
  test::put(out, kSection + 20, std::uint32_t{0x400});
  test::put(out, kSection + 36, std::uint32_t{0x40000040});
  return out;
}

TEST(Pe, TellsMachineBaseAndSections) {
  const Buffer file = dll();
  const auto pe = PeReader::open(file);
  ASSERT_TRUE(pe.ok());
  EXPECT_EQ(pe->machine(), 0x8664);
  EXPECT_EQ(pe->image_base(), 0x180000000U);
  ASSERT_EQ(pe->section_count(), 1U);
  const auto section = pe->section(0);
  ASSERT_TRUE(section.ok());
  EXPECT_EQ(section->name, ".nv_fatb");  // eight characters, no NUL
  EXPECT_EQ(section->address, 0x5000U);
  EXPECT_EQ(section->offset, 0x400U);
  EXPECT_EQ(section->bytes.data(), file.data() + 0x400);
  EXPECT_EQ(section->bytes.size(), 512U);
  EXPECT_TRUE(section->is_initialized_data());
  EXPECT_FALSE(section->is_code());
  EXPECT_EQ(pe->section(1).error().code, Errc::not_found);
}

TEST(Pe, Of32BitsHasItsBaseElsewhere) {
  Buffer file = dll();
  test::put(file, kOptional, std::uint16_t{0x10b});
  test::put(file, kOptional + 28, std::uint32_t{0x10000000});
  EXPECT_EQ(PeReader::open(file)->image_base(), 0x10000000U);
}

TEST(Pe, SectionNamesEndAtANul) {
  Buffer file = dll();
  std::memcpy(file.data() + kSection, ".data\0\0\0", 8);
  EXPECT_EQ(PeReader::open(file)->section(0)->name, ".data");
}

TEST(Pe, SectionsEndWhereTheFileEnds) {
  Buffer file = dll();
  test::put(file, kSection + 16, UINT32_MAX);
  EXPECT_EQ(PeReader::open(file)->section(0)->bytes.size(), 512U);
  EXPECT_EQ(PeReader::open(file)->section(0)->size, UINT32_MAX);
  test::put(file, kSection + 20, std::uint32_t{0x600});
  EXPECT_TRUE(PeReader::open(file)->section(0)->bytes.empty());
  test::put(file, kSection + 20, UINT32_MAX);
  EXPECT_TRUE(PeReader::open(file)->section(0)->bytes.empty());
}

TEST(Pe, CutOffAnywhereIsAnErrorOrIsReadToItsEnd) {
  const Buffer whole = dll();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Buffer file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto pe = PeReader::open(file);
    EXPECT_EQ(pe.ok(), size >= kOptional + 2) << size;
    if (!pe) continue;
    const auto section = pe->section(0);
    EXPECT_EQ(section.ok(), size >= kSection + 40) << size;
    if (!section) continue;
    EXPECT_EQ(section->bytes.size(), size > 0x400 ? size - 0x400 : 0) << size;
  }
}

TEST(Pe, OfDosOrAnythingElseIsRefused) {
  Buffer file = dll();
  test::put(file, 0x3c, UINT32_MAX);
  EXPECT_EQ(PeReader::open(file).error().code, Errc::bad_magic);
  test::put(file, 0x3c, std::uint32_t{0x200});
  EXPECT_EQ(PeReader::open(file).error().code, Errc::bad_magic);
  file = dll();
  test::put(file, kOptional, std::uint16_t{0x107});  // a ROM image
  EXPECT_EQ(PeReader::open(file).error().code, Errc::unsupported_version);
  test::put(file, 0, std::uint16_t{0x4d5a});
  EXPECT_EQ(PeReader::open(file).error().code, Errc::bad_magic);
}

}  // namespace
}  // namespace kshim::image
