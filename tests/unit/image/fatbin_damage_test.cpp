// SPDX-License-Identifier: Apache-2.0
// Every way in which a fatbin can be wrong has a test of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "fatbin_builder.h"
#include "kshim/image/fatbin.h"

namespace kshim::image {
namespace {

using test::arch_of;
using test::Buffer;
using test::FatbinBuilder;
using test::kFatbinHeader;
using test::put;

constexpr std::size_t kEntry = 64;    // header of the first entry
constexpr std::size_t kPayload = 32;  // bytes of each payload

/// Two cubins, sm_80 and sm_90.
Buffer whole() {
  return FatbinBuilder{}.cubin(arch_of(80), Buffer(kPayload)).cubin(arch_of(90), Buffer(kPayload)).build();
}

void expect_refused(const Buffer& bytes, Errc code, std::uint64_t offset) {
  const auto reader = FatbinReader::open(bytes);
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, code);
  EXPECT_EQ(reader.error().offset, offset);
}

/// The first entry is refused; afterwards the walk goes on (at sm_90) or has ended.
void expect_bad_entry(const Buffer& bytes, Errc code, std::uint64_t offset, bool goes_on) {
  const auto opened = FatbinReader::open(bytes);
  ASSERT_TRUE(opened.ok());
  FatbinReader reader = *opened;
  const auto first = reader.next();
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code, code);
  EXPECT_EQ(first.error().offset, offset);
  const auto second = reader.next();
  ASSERT_EQ(second.ok(), goes_on);
  if (goes_on) {
    EXPECT_EQ(second->arch, arch_of(90));
  } else {
    EXPECT_EQ(second.error().code, Errc::not_found);
  }
}

template <class T>
Buffer whole_with(std::size_t offset, T value) {
  Buffer bytes = whole();
  put(bytes, offset, value);
  return bytes;
}
template <class T>
Buffer with_entry(std::size_t field, T value) {
  return whole_with(kFatbinHeader + field, value);
}

// The container's header.

TEST(FatbinDamage, NoBytes) { expect_refused({}, Errc::truncated, 0); }

TEST(FatbinDamage, ContainerHeaderCutOffInEveryField) {
  const Buffer bytes = whole();
  for (std::size_t size = 0; size < kFatbinHeader; ++size) {
    const auto reader = FatbinReader::open(Bytes(bytes).first(size));
    ASSERT_FALSE(reader.ok()) << size;
    EXPECT_EQ(reader.error().code, Errc::truncated) << size;
  }
}

TEST(FatbinDamage, WrongMagic) {
  expect_refused(whole_with(0, std::uint32_t{0xba55ed51}), Errc::bad_magic, 0);
}

TEST(FatbinDamage, WrongMagicInFourBytes) {
  Buffer bytes = whole_with(0, std::uint32_t{0x464c457f});
  bytes.resize(4);
  expect_refused(bytes, Errc::bad_magic, 0);
}

TEST(FatbinDamage, BigEndianMagic) {
  expect_refused(whole_with(0, std::uint32_t{0x50ed55ba}), Errc::bad_magic, 0);
}

TEST(FatbinDamage, VersionZero) {
  expect_refused(whole_with(4, std::uint16_t{0}), Errc::unsupported_version, 4);
}

TEST(FatbinDamage, VersionTwo) {
  expect_refused(whole_with(4, std::uint16_t{2}), Errc::unsupported_version, 4);
}

TEST(FatbinDamage, ContainerHeaderSizeZero) {
  expect_refused(whole_with(6, std::uint16_t{0}), Errc::bad_header, 6);
}

TEST(FatbinDamage, ContainerHeaderSizeTooSmall) {
  expect_refused(whole_with(6, std::uint16_t{15}), Errc::bad_header, 6);
}

TEST(FatbinDamage, ContainerHeaderBeyondTheEnd) {
  const Buffer bytes = whole_with(6, std::uint16_t{0xffff});
  expect_refused(bytes, Errc::truncated, bytes.size());
}

TEST(FatbinDamage, EntriesSizeBeyondTheEndByOne) {
  const Buffer bytes = whole_with(8, std::uint64_t{whole().size() - kFatbinHeader + 1});
  expect_refused(bytes, Errc::truncated, bytes.size());
}

TEST(FatbinDamage, EntriesSizeOverflows64Bits) {
  expect_refused(whole_with(8, UINT64_MAX), Errc::overflow, 8);
  expect_refused(whole_with(8, UINT64_MAX - 15), Errc::overflow, 8);
}

TEST(FatbinDamage, EntriesSizeJustBelowTheOverflow) {
  const Buffer bytes = whole_with(8, UINT64_MAX - 16);
  expect_refused(bytes, Errc::truncated, bytes.size());
}

TEST(FatbinDamage, EveryTruncationOfTheWholeIsNoticed) {
  const Buffer bytes = whole();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(FatbinReader::open(Bytes(bytes).first(size)).error().code, Errc::truncated) << size;
}

// An entry's header.

TEST(FatbinDamage, EntryHeaderCutOffInEveryField) {
  for (std::uint64_t left = 1; left < kEntry; ++left)
    expect_bad_entry(whole_with(8, left), Errc::truncated, kFatbinHeader, false);
}

TEST(FatbinDamage, PayloadCutOff) {
  for (std::uint64_t left = kEntry; left < kEntry + kPayload; ++left)
    expect_bad_entry(whole_with(8, left), Errc::truncated, kFatbinHeader, false);
}

TEST(FatbinDamage, UnknownKindIsPassedOver) {
  for (const unsigned kind : {0U, 3U, 4U, 7U, 9U, 16U, 32U, 64U, 0xffffU})
    expect_bad_entry(with_entry(test::kEntryKind, static_cast<std::uint16_t>(kind)), Errc::unknown_kind,
                     kFatbinHeader, true);
}

TEST(FatbinDamage, WrongEntryVersionEndsTheWalk) {
  for (const unsigned version : {0x0000U, 0x0100U, 0x0102U, 0x0201U, 0xffffU})
    expect_bad_entry(with_entry(test::kEntryVersion, static_cast<std::uint16_t>(version)),
                     Errc::unsupported_version, kFatbinHeader + 2, false);
}

TEST(FatbinDamage, EntryHeaderSizeZero) {
  expect_bad_entry(with_entry(test::kEntryHeaderSize, 0U), Errc::bad_header, kFatbinHeader + 4, false);
}

TEST(FatbinDamage, EntryHeaderSizeTooSmall) {
  expect_bad_entry(with_entry(test::kEntryHeaderSize, 63U), Errc::bad_header, kFatbinHeader + 4, false);
}

TEST(FatbinDamage, EntryHeaderBeyondTheEnd) {
  expect_bad_entry(with_entry(test::kEntryHeaderSize, UINT32_MAX), Errc::truncated, kFatbinHeader, false);
}

TEST(FatbinDamage, PayloadSizeBeyondTheEndByOne) {
  const std::uint64_t too_long = whole().size() - kFatbinHeader - kEntry + 1;
  expect_bad_entry(with_entry(test::kEntryPayloadSize, too_long), Errc::truncated, kFatbinHeader, false);
}

TEST(FatbinDamage, PayloadSizeOverflows64Bits) {
  expect_bad_entry(with_entry(test::kEntryPayloadSize, UINT64_MAX), Errc::overflow, kFatbinHeader + 8, false);
  expect_bad_entry(with_entry(test::kEntryPayloadSize, UINT64_MAX - 63), Errc::overflow, kFatbinHeader + 8,
                   false);
}

TEST(FatbinDamage, PayloadSizeJustBelowTheOverflow) {
  expect_bad_entry(with_entry(test::kEntryPayloadSize, UINT64_MAX - 64), Errc::truncated, kFatbinHeader,
                   false);
}

TEST(FatbinDamage, PayloadSizeZeroLeadsIntoAPayload) {  // zeros where an entry's header should be
  Buffer bytes = with_entry(test::kEntryPayloadSize, std::uint64_t{0});
  FatbinReader reader = *FatbinReader::open(bytes);
  const auto first = reader.next();
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->payload.empty());
  EXPECT_EQ(reader.next().error().code, Errc::unsupported_version);
  EXPECT_EQ(reader.next().error().code, Errc::not_found);
}

TEST(FatbinDamage, SmNumberOutOfRangeIsPassedOver) {
  for (const std::uint32_t sm : {0U, 9U, 10000U, UINT32_MAX})
    expect_bad_entry(with_entry(test::kEntrySm, sm), Errc::bad_header, kFatbinHeader + 28, true);
}

TEST(FatbinDamage, CompressedSizeBeyondThePayload) {
  Buffer bytes = with_entry(test::kEntryFlags, std::uint64_t{0x8011});
  put(bytes, kFatbinHeader + test::kEntryCompressedSize, std::uint32_t{kPayload + 1});
  expect_bad_entry(bytes, Errc::bad_header, kFatbinHeader + 16, true);
  put(bytes, kFatbinHeader + test::kEntryCompressedSize, UINT32_MAX);
  expect_bad_entry(bytes, Errc::bad_header, kFatbinHeader + 16, true);
}

TEST(FatbinDamage, CompressedSizeZeroTakesThePaddedPayload) {
  const Buffer bytes = with_entry(test::kEntryFlags, std::uint64_t{0x8011});
  FatbinReader reader = *FatbinReader::open(bytes);
  EXPECT_EQ(reader.next()->payload.size(), kPayload);
}

TEST(FatbinDamage, AnUncompressedSizeWithoutAKnownMethodIsUnknownCompression) {
  const Buffer bytes = with_entry(test::kEntryUncompressedSize, std::uint64_t{100});
  FatbinReader reader = *FatbinReader::open(bytes);
  EXPECT_EQ(reader.next()->compression, Compression::unknown);
}

TEST(FatbinDamage, TheSecondEntryMayBeTheBrokenOne) {
  const Buffer bytes = whole_with(kFatbinHeader + kEntry + kPayload + test::kEntryVersion, std::uint16_t{0});
  FatbinReader reader = *FatbinReader::open(bytes);
  EXPECT_EQ(reader.next()->arch, arch_of(80));
  const auto second = reader.next();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().offset, kFatbinHeader + kEntry + kPayload + 2);
}

TEST(FatbinDamage, TrailingBytesTooShortForAnEntry) {
  Buffer bytes = whole();
  bytes.resize(bytes.size() + 8);
  put(bytes, 8, std::uint64_t{bytes.size() - kFatbinHeader});
  FatbinReader reader = *FatbinReader::open(bytes);
  ASSERT_TRUE(reader.next().ok());
  ASSERT_TRUE(reader.next().ok());
  EXPECT_EQ(reader.next().error().code, Errc::truncated);
  EXPECT_EQ(reader.next().error().code, Errc::not_found);
}

TEST(FatbinDamage, AReaderOfNothingIsAtItsEnd) {
  FatbinReader reader;
  EXPECT_EQ(reader.next().error().code, Errc::not_found);
  EXPECT_EQ(reader.size(), 0U);
}

}  // namespace
}  // namespace kshim::image
