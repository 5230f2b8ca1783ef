// SPDX-License-Identifier: Apache-2.0
// ELF files composed in memory, whole and broken.
#include "kshim/image/elf.h"

#include <gtest/gtest.h>

#include <string>

#include "cubin_builder.h"

namespace kshim::image {
namespace {

using test::Buffer;
using test::ElfBuilder;
using test::put;
using test::to_buffer;

// Offsets in the file header (System V ABI, ELF-64).
constexpr std::size_t kClass = 4;
constexpr std::size_t kData = 5;
constexpr std::size_t kIdentVersion = 6;
constexpr std::size_t kMachine = 18;
constexpr std::size_t kProgramOffset = 32;
constexpr std::size_t kSectionOffset = 40;
constexpr std::size_t kProgramSize = 54;
constexpr std::size_t kProgramCount = 56;
constexpr std::size_t kSectionSize = 58;
constexpr std::size_t kSectionCount = 60;
constexpr std::size_t kNamesIndex = 62;
// Offsets in a section header.
constexpr std::size_t kSectionHeader = 64;
constexpr std::size_t kHeaderType = 4;
constexpr std::size_t kHeaderOffset = 24;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kHeaderLink = 40;

constexpr std::uint64_t kAllocated = 2;

Buffer build_id_note(std::string_view id) {
  Buffer note;
  test::append(note, 4U);
  test::append(note, static_cast<std::uint32_t>(id.size()));
  test::append(note, 3U);
  test::append(note, std::string_view("GNU\0", 4));
  test::append(note, id);
  return note;
}

/// Sections: 1 .note.gnu.build-id, 2 .rodata at 0x2000, 3 .bss, 4 .strtab, 5 .symtab, 6 .shstrtab
Buffer host_file() {
  ElfBuilder elf;
  elf.machine = 62;
  elf.os_abi = 0;
  elf.abi_version = 0;
  elf.section(".note.gnu.build-id", 7, build_id_note("abcdefgh"), 0, 0, kAllocated, 0x1000);
  const auto data = elf.section(".rodata", 1, to_buffer("0123456789"), 0, 0, kAllocated, 0x2000);
  elf.section(".bss", ElfBuilder::kNoBits, {}, 4096, 0, kAllocated, 0x3000);
  elf.symbol("digits", 0x11, 0, data, 0x2000, 10);
  return elf.build();
}
ElfReader open_elf(const Buffer& bytes) {
  const auto elf = ElfReader::open(bytes);
  EXPECT_TRUE(elf.ok());
  return elf.value_or({});
}
std::size_t header_of(const Buffer& bytes, std::size_t index) {
  return static_cast<std::size_t>(*read_le<std::uint64_t>(bytes, kSectionOffset)) + index * kSectionHeader;
}
template <class T>
Buffer host_file_with(std::size_t offset, T value) {
  Buffer bytes = host_file();
  put(bytes, offset, value);
  return bytes;
}
template <class T>
Buffer with_header(std::size_t index, std::size_t field, T value) {
  Buffer bytes = host_file();
  put(bytes, header_of(bytes, index) + field, value);
  return bytes;
}
Errc refusal(const Buffer& bytes) {
  const auto elf = ElfReader::open(bytes);
  EXPECT_FALSE(elf.ok());
  return elf.error().code;
}

TEST(Elf, ReadsHeaderSectionsAndSymbols) {
  const Buffer bytes = host_file();
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.machine(), 62);
  EXPECT_EQ(elf.section_count(), 7U);
  const auto data = elf.section(".rodata");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(text_of(data->bytes), "0123456789");
  EXPECT_EQ(data->index, 2U);
  EXPECT_EQ(data->address, 0x2000U);
  const auto zeros = elf.section(".bss");
  ASSERT_TRUE(zeros.ok());
  EXPECT_TRUE(zeros->bytes.empty());
  EXPECT_EQ(zeros->size, 4096U);
  EXPECT_EQ(elf.section(".nv_fatbin").error().code, Errc::not_found);
  EXPECT_EQ(elf.section(7).error().code, Errc::not_found);
  const auto table = elf.section(".symtab");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(elf.symbol_count(*table), 2U);
  const auto symbol = elf.symbol(*table, 1);
  ASSERT_TRUE(symbol.ok());
  EXPECT_EQ(symbol->name, "digits");
  EXPECT_EQ(symbol->section, 2);
  EXPECT_EQ(symbol->value, 0x2000U);
  EXPECT_EQ(symbol->size, 10U);
  EXPECT_EQ(elf.symbol(*table, 2).error().code, Errc::not_found);
}

TEST(Elf, FindsTheBuildId) {
  const Buffer bytes = host_file();
  const ElfReader elf = open_elf(bytes);
  ASSERT_TRUE(elf.build_id().ok());
  EXPECT_EQ(text_of(*elf.build_id()), "abcdefgh");
}

TEST(Elf, FindsTheBuildIdBehindOtherNotes) {
  Buffer notes;
  test::append(notes, 5U);  // a name of 5 bytes, padded to 8
  test::append(notes, 2U);
  test::append(notes, 1U);
  test::append(notes, std::string_view("other\0\0\0ab\0\0", 12));
  test::append(notes, build_id_note("x"));
  ElfBuilder elf;
  elf.section(".note", 7, notes);
  const Buffer bytes = elf.build();
  EXPECT_EQ(text_of(*open_elf(bytes).build_id()), "x");
}

TEST(Elf, WithoutABuildIdSaysSo) {
  for (const std::string_view broken :
       {"", "short", "\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU", "\xff\xff\xff\xff\4\0\0\0\3\0\0\0GNU"}) {
    ElfBuilder elf;
    elf.section(".note.gnu.build-id", 7, to_buffer(broken));
    const Buffer bytes = elf.build();
    EXPECT_EQ(open_elf(bytes).build_id().error().code, Errc::not_found);
  }
}

TEST(Elf, ReadsAtAnAddressThroughSections) {
  const Buffer bytes = host_file();
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(text_of(*elf.at_address(0x2003, 4)), "3456");
  EXPECT_EQ(text_of(*elf.from_address(0x2008)), "89");
  EXPECT_EQ(elf.at_address(0x2003, 8).error().code, Errc::truncated);
  EXPECT_EQ(elf.at_address(0x200a, 0).error().code, Errc::not_found);
  EXPECT_EQ(elf.at_address(0x3000, 1).error().code, Errc::not_found) << ".bss has no bytes";
  EXPECT_EQ(elf.at_address(UINT64_MAX, 1).error().code, Errc::not_found);
}

struct Segment {
  std::uint64_t offset, address, file_size;
};

/// The file with one PT_LOAD behind everything else.
Buffer with_segment(const Segment& segment) {
  Buffer bytes = host_file();
  const std::size_t at = bytes.size();
  put(bytes, kProgramOffset, std::uint64_t{at});
  put(bytes, kProgramCount, std::uint16_t{1});
  put(bytes, at, 1U);
  put(bytes, at + 8, segment.offset);
  put(bytes, at + 16, segment.address);
  put(bytes, at + 32, segment.file_size);
  put(bytes, at + 48, std::uint64_t{0});
  return bytes;
}

TEST(Elf, ReadsAtAnAddressThroughSegments) {
  const Buffer bytes = with_segment({0, 0x400000, 64});
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(text_of(*elf.at_address(0x400001, 3)), "ELF");
  EXPECT_EQ(elf.at_address(0x40003f, 2).error().code, Errc::truncated);
  EXPECT_EQ(elf.at_address(0x400040, 1).error().code, Errc::not_found);
  EXPECT_EQ(elf.at_address(0x3fffff, 1).error().code, Errc::not_found);
}

TEST(Elf, SegmentBeyondTheEndIsTruncated) {
  const Buffer bytes = with_segment({1 << 20, 0x400000, 64});
  EXPECT_EQ(open_elf(bytes).at_address(0x400000, 1).error().code, Errc::truncated);
}

TEST(Elf, SegmentWhoseOffsetOverflowsIsPassedOver) {
  const Buffer bytes = with_segment({UINT64_MAX - 3, 0x400000, 64});
  EXPECT_EQ(open_elf(bytes).at_address(0x400010, 1).error().code, Errc::not_found);
}

TEST(Elf, SegmentLongerThanTheFileIsTruncated) {
  const Buffer bytes = with_segment({0, 0x400000, UINT64_MAX});
  EXPECT_EQ(open_elf(bytes).from_address(0x400000).error().code, Errc::truncated);
}

TEST(Elf, ExtentIsWhatTheHeadersDescribe) {
  Buffer bytes = host_file();
  const std::size_t size = bytes.size();
  EXPECT_EQ(open_elf(bytes).extent(), size);
  bytes.resize(size + 1000);  // what follows an image in memory
  EXPECT_EQ(open_elf(bytes).extent(), size);
}

TEST(Elf, ExtentNeverLeavesTheBytes) {
  const Buffer bytes = with_header(2, kHeaderBytes, UINT64_MAX);
  EXPECT_EQ(open_elf(bytes).extent(), bytes.size());
}

TEST(Elf, CountsSectionsBeyondSixteenBits) {  // e_shnum 0: the count is the first header's size
  Buffer bytes = host_file();
  put(bytes, kSectionCount, std::uint16_t{0});
  put(bytes, header_of(bytes, 0) + kHeaderBytes, std::uint64_t{7});
  put(bytes, kNamesIndex, std::uint16_t{0xffff});  // and the names' index its link
  put(bytes, header_of(bytes, 0) + kHeaderLink, 6U);
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.section_count(), 7U);
  EXPECT_TRUE(elf.section(".rodata").ok());
}

TEST(Elf, WithoutSectionsIsRead) {
  Buffer bytes = host_file_with(kSectionOffset, std::uint64_t{0});
  put(bytes, kSectionCount, std::uint16_t{0});
  EXPECT_EQ(open_elf(bytes).section_count(), 0U);
}

TEST(Elf, WithoutSectionNamesIsRead) {
  const Buffer bytes = host_file_with(kNamesIndex, std::uint16_t{0});
  const ElfReader elf = open_elf(bytes);
  ASSERT_TRUE(elf.section(2).ok());
  EXPECT_TRUE(elf.section(2)->name.empty());
}

// Damage.

TEST(ElfDamage, NoBytes) { EXPECT_EQ(refusal({}), Errc::truncated); }

TEST(ElfDamage, HeaderCutOffInEveryField) {
  const Buffer bytes = host_file();
  for (std::size_t size = 0; size < 64; ++size)
    EXPECT_EQ(ElfReader::open(Bytes(bytes).first(size)).error().code, Errc::truncated) << size;
}

TEST(ElfDamage, WrongMagic) { EXPECT_EQ(refusal(host_file_with(0, std::uint8_t{0x7e})), Errc::bad_magic); }

TEST(ElfDamage, ThirtyTwoBits) {
  EXPECT_EQ(refusal(host_file_with(kClass, std::uint8_t{1})), Errc::unsupported_version);
}

TEST(ElfDamage, BigEndian) {
  EXPECT_EQ(refusal(host_file_with(kData, std::uint8_t{2})), Errc::unsupported_version);
}

TEST(ElfDamage, VersionZero) {
  EXPECT_EQ(refusal(host_file_with(kIdentVersion, std::uint8_t{0})), Errc::unsupported_version);
}

TEST(ElfDamage, SectionHeadersOfAnotherSize) {
  for (const unsigned size : {0U, 63U, 65U, 0xffffU})
    EXPECT_EQ(refusal(host_file_with(kSectionSize, static_cast<std::uint16_t>(size))), Errc::bad_header)
        << size;
}

TEST(ElfDamage, SectionTableBeyondTheEnd) {
  const Buffer bytes = host_file();
  EXPECT_EQ(refusal(host_file_with(kSectionOffset, std::uint64_t{bytes.size()})), Errc::truncated);
  EXPECT_EQ(refusal(host_file_with(kSectionCount, std::uint16_t{8})), Errc::truncated);
}

TEST(ElfDamage, SectionTableOverflows64Bits) {
  EXPECT_EQ(refusal(host_file_with(kSectionOffset, UINT64_MAX)), Errc::truncated);
  EXPECT_EQ(refusal(host_file_with(kSectionOffset, UINT64_MAX - 7 * kSectionHeader + 1)), Errc::truncated);
}

TEST(ElfDamage, SectionCountTooLargeForItsField) {
  Buffer bytes = host_file_with(kSectionCount, std::uint16_t{0});
  put(bytes, header_of(bytes, 0) + kHeaderBytes, std::uint64_t{1} << 32);
  EXPECT_EQ(refusal(bytes), Errc::bad_header);
  put(bytes, header_of(bytes, 0) + kHeaderBytes, std::uint64_t{UINT32_MAX});
  EXPECT_EQ(refusal(bytes), Errc::truncated);
}

TEST(ElfDamage, SectionNamesIndexOutOfRange) {
  const Buffer bytes = host_file_with(kNamesIndex, std::uint16_t{7});
  EXPECT_EQ(open_elf(bytes).section(1).error().code, Errc::bad_header);
}

TEST(ElfDamage, SectionNamesBeyondTheEnd) {
  const Buffer bytes = with_header(6, kHeaderOffset, UINT64_MAX);
  EXPECT_EQ(open_elf(bytes).section(1).error().code, Errc::truncated);
}

TEST(ElfDamage, SectionNameOutsideOfTheNames) {
  const Buffer bytes = with_header(2, 0, UINT32_MAX);
  EXPECT_EQ(open_elf(bytes).section(2).error().code, Errc::truncated);
}

TEST(ElfDamage, SectionNameWithoutAnEnd) {
  Buffer bytes = host_file();
  const auto size = *read_le<std::uint64_t>(bytes, header_of(bytes, 6) + kHeaderBytes);
  put(bytes, header_of(bytes, 6) + kHeaderBytes, size - 1);  // the last name loses its NUL
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.section(6).error().code, Errc::truncated);
  EXPECT_TRUE(elf.section(5).ok());
}

TEST(ElfDamage, SectionBytesBeyondTheEnd) {
  const Buffer bytes = with_header(2, kHeaderOffset, std::uint64_t{host_file().size()});
  EXPECT_EQ(open_elf(bytes).section(2).error().code, Errc::truncated);
  EXPECT_EQ(open_elf(bytes).section(".rodata").error().code, Errc::truncated);
}

TEST(ElfDamage, SectionBytesOverflow64Bits) {
  const Buffer bytes = with_header(2, kHeaderBytes, UINT64_MAX);
  EXPECT_EQ(open_elf(bytes).section(2).error().code, Errc::truncated);
}

TEST(ElfDamage, SectionWithoutFileBytesMayHaveAnyPlace) {
  const Buffer bytes = with_header(3, kHeaderOffset, UINT64_MAX);
  EXPECT_TRUE(open_elf(bytes).section(3).ok());
}

TEST(ElfDamage, SymbolNamesLinkOutOfRange) {
  const Buffer bytes = with_header(5, kHeaderLink, 7U);
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.symbol(*elf.section(5), 1).error().code, Errc::bad_header);
}

TEST(ElfDamage, SymbolNamesBeyondTheEnd) {
  const Buffer bytes = with_header(4, kHeaderBytes, UINT64_MAX);
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.symbol(*elf.section(5), 1).error().code, Errc::truncated);
}

TEST(ElfDamage, SymbolNameOutsideOfTheNames) {
  Buffer bytes = host_file();
  const ElfSection table = *open_elf(bytes).section(5);
  put(bytes, static_cast<std::size_t>(table.offset) + 24, UINT32_MAX);
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.symbol(*elf.section(5), 1).error().code, Errc::truncated);
}

TEST(ElfDamage, SymbolTableCutOffInsideASymbol) {
  const Buffer bytes = with_header(5, kHeaderBytes, std::uint64_t{47});
  const ElfReader elf = open_elf(bytes);
  EXPECT_EQ(elf.symbol_count(*elf.section(5)), 1U);
}

TEST(ElfDamage, ProgramHeadersOfAnotherSize) {
  Buffer bytes = host_file_with(kProgramCount, std::uint16_t{1});
  put(bytes, kProgramSize, std::uint16_t{32});
  EXPECT_EQ(refusal(bytes), Errc::bad_header);
}

TEST(ElfDamage, ProgramHeadersBeyondTheEnd) {
  Buffer bytes = host_file_with(kProgramCount, std::uint16_t{1});
  put(bytes, kProgramOffset, std::uint64_t{bytes.size() - 55});
  EXPECT_EQ(refusal(bytes), Errc::truncated);
  put(bytes, kProgramOffset, UINT64_MAX);
  EXPECT_EQ(refusal(bytes), Errc::truncated);
}

TEST(ElfDamage, AnUnknownSectionTypeOfAHostIsNoDeviceMemory) {  // CUDA's section types mean it in cubins only
  Buffer bytes = with_header(2, kHeaderType, 0x70000007U);
  EXPECT_EQ(open_elf(bytes).section(2)->bytes.size(), 10U);
  put(bytes, kMachine, std::uint16_t{190});
  EXPECT_TRUE(open_elf(bytes).section(2)->bytes.empty());
}

TEST(ElfDamage, EveryTruncationIsReadInsideItsBounds) {  // AddressSanitizer is the judge
  const Buffer bytes = host_file();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto elf = ElfReader::open(cut);
    EXPECT_FALSE(elf.ok()) << "the section table stands at the end";
  }
}

}  // namespace
}  // namespace kshim::image
