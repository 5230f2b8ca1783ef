// SPDX-License-Identifier: Apache-2.0
// Whole fatbins, composed byte by byte as nvcc 13.0 writes them. Broken ones: fatbin_damage_test.cpp.
#include "kshim/image/fatbin.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "fatbin_builder.h"

namespace kshim::image {
namespace {

using test::arch_of;
using test::Buffer;
using test::EntrySpec;
using test::FatbinBuilder;
using test::to_buffer;

std::vector<Image> images_of(const Buffer& bytes) {
  std::vector<Image> out;
  auto opened = FatbinReader::open(bytes);
  EXPECT_TRUE(opened.ok());
  if (!opened) return out;
  FatbinReader reader = *opened;
  for (;;) {
    const auto image = reader.next();
    if (!image) {
      EXPECT_EQ(image.error().code, Errc::not_found);
      EXPECT_EQ(image.error().offset, reader.size());
      return out;
    }
    out.push_back(*image);
  }
}

TEST(Fatbin, ListsItsImagesInOrder) {
  const Buffer bytes = FatbinBuilder{}
                           .cubin(arch_of(75))
                           .cubin(arch_of(90, Suffix::a))
                           .ptx(arch_of(120, Suffix::f), {9, 0}, ".version 9.0")
                           .ltoir(arch_of(86))
                           .build();
  const auto images = images_of(bytes);
  ASSERT_EQ(images.size(), 4U);
  EXPECT_EQ(images[0].kind, ImageKind::cubin);
  EXPECT_EQ(images[0].arch, arch_of(75));
  EXPECT_EQ(images[0].isa, Version{});
  EXPECT_EQ(images[0].offset, 16U);
  EXPECT_EQ(images[1].arch, arch_of(90, Suffix::a));
  EXPECT_EQ(images[1].offset, 16U + 64 + 8);
  EXPECT_EQ(images[2].kind, ImageKind::ptx);
  EXPECT_EQ(images[2].arch, arch_of(120, Suffix::f));
  EXPECT_EQ(images[2].isa, (Version{9, 0}));
  EXPECT_TRUE(text_of(images[2].payload).starts_with(".version 9.0"));
  EXPECT_EQ(images[3].kind, ImageKind::ltoir);
  EXPECT_EQ(images[3].isa, Version{});
}

TEST(Fatbin, WithoutImagesIsWholeAndEmpty) {  // every nvcc program carries one for its host side
  const Buffer bytes = FatbinBuilder{}.build();
  EXPECT_TRUE(images_of(bytes).empty());
  EXPECT_EQ(FatbinReader::open(bytes)->size(), 16U);
}

TEST(Fatbin, EndsWhereItsHeaderSaysAndLeavesTheRestAlone) {
  Buffer bytes = FatbinBuilder{}.cubin(arch_of(80)).build();
  const std::size_t size = bytes.size();
  test::append(bytes, FatbinBuilder{}.cubin(arch_of(90)).build());  // the next one of the section
  const auto images = images_of(bytes);
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(FatbinReader::open(bytes)->size(), size);
  const auto second = images_of(Buffer(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end()));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].arch, arch_of(90));
}

TEST(Fatbin,
     IsReadAtAnyAddress) {  // of cuBLAS's 193 fatbins, 100 start at 8 mod 16; a cut-out may start anywhere
  Buffer shifted(1);
  test::append(shifted, FatbinBuilder{}.cubin(arch_of(80)).build());
  auto reader = FatbinReader::open(Bytes(shifted).subspan(1));
  ASSERT_TRUE(reader.ok());
  FatbinReader walk = *reader;
  EXPECT_EQ(walk.next()->arch, arch_of(80));
}

TEST(Fatbin, SkipsHeadersOfEveryLengthSeen) {
  for (std::uint32_t header_size = 64; header_size <= 128; header_size += 8) {
    EntrySpec entry{.arch = arch_of(100), .payload = to_buffer("12345678"), .header_size = header_size};
    const Buffer bytes = FatbinBuilder{}.add(entry).cubin(arch_of(75)).build();
    const auto images = images_of(bytes);
    ASSERT_EQ(images.size(), 2U) << header_size;
    EXPECT_EQ(text_of(images[0].payload), "12345678") << header_size;
    EXPECT_EQ(images[1].arch, arch_of(75)) << header_size;
  }
}

TEST(Fatbin, ReadsALongerContainerHeader) {
  Buffer bytes = FatbinBuilder{}.cubin(arch_of(80)).build();
  bytes.insert(bytes.begin() + 16, 8, std::byte{0xee});
  test::put(bytes, 6, std::uint16_t{24});
  const auto images = images_of(bytes);
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].offset, 24U);
}

struct FlagCase {
  std::uint64_t flags;
  Suffix suffix;
  Compression compression;
  bool debug;
};

TEST(Fatbin, ReadsFlags) {
  for (const FlagCase& each : {FlagCase{0x11, Suffix::none, Compression::none, false},
                               {0x13, Suffix::none, Compression::none, true},
                               {0x2011, Suffix::none, Compression::lz4, false},
                               {0x8011, Suffix::none, Compression::zstd, false},
                               {0x18011, Suffix::none, Compression::unknown, false},  // scrambled LTO-IR
                               {0x100011, Suffix::a, Compression::none, false},
                               {0x200011, Suffix::f, Compression::none, false},
                               {0x1000011, Suffix::none, Compression::none, false},
                               {0x1308013, Suffix::a, Compression::zstd, true}}) {
    Buffer bytes = FatbinBuilder{}.cubin(arch_of(100)).build();
    test::put(bytes, test::kFatbinHeader + test::kEntryFlags, each.flags);
    const auto images = images_of(bytes);
    ASSERT_EQ(images.size(), 1U);
    EXPECT_EQ(images[0].arch.suffix, each.suffix) << std::hex << each.flags;
    EXPECT_EQ(images[0].compression, each.compression) << std::hex << each.flags;
    EXPECT_EQ(images[0].debug, each.debug) << std::hex << each.flags;
    EXPECT_EQ(images[0].flags, each.flags);
  }
}

// As nvcc 13.4 writes it for a cubin that tileiras made: asked for sm_120, made of sm_120a.
TEST(Fatbin, ReadsTheSuffixBehindTheHeader) {
  for (const std::uint32_t tag : {0U, 1U}) {
    EntrySpec entry{
        .arch = arch_of(120), .payload = to_buffer("12345678"), .header_size = 120, .extra_flags = 0x1000000};
    Buffer bytes = FatbinBuilder{}.add(entry).build();
    const std::size_t at = test::kFatbinHeader;
    test::put(bytes, at + 64, 0x48U);
    test::put(bytes, at + 68, 8U);
    test::put(bytes, at + 73, 0x00000c02U);
    test::put(bytes, at + 77, 0x00000902U | tag << 16U);
    EXPECT_EQ(images_of(bytes)[0].arch, arch_of(120, tag == 1 ? Suffix::a : Suffix::none));
    test::put(bytes, at + 68, 0x7fffffffU);  // beyond the header
    EXPECT_EQ(images_of(bytes)[0].arch, arch_of(120));
  }
}

TEST(Fatbin, CutsThePaddingOffACompressedPayload) {
  EntrySpec entry{.arch = arch_of(90),
                  .payload = to_buffer("12345"),
                  .compression = Compression::zstd,
                  .uncompressed_size = 1000};
  const Buffer bytes = FatbinBuilder{}.add(entry).build();
  const auto images = images_of(bytes);
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(text_of(images[0].payload), "12345");
  EXPECT_EQ(images[0].uncompressed_size, 1000U);
}

TEST(Fatbin, KeepsThePaddingOfAStoredPayload) {  // the header does not say where it begins
  const Buffer bytes = FatbinBuilder{}.cubin(arch_of(90), to_buffer("12345")).build();
  const auto images = images_of(bytes);
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].payload.size(), 8U);
  EXPECT_EQ(images[0].uncompressed_size, 8U);
}

TEST(Fatbin, AnImageWithoutAPayloadIsAnImage) {
  const Buffer bytes = FatbinBuilder{}.cubin(arch_of(90), {}).cubin(arch_of(80)).build();
  const auto images = images_of(bytes);
  ASSERT_EQ(images.size(), 2U);
  EXPECT_TRUE(images[0].payload.empty());
}

TEST(Fatbin, ReadsThePtxIsaOfEveryToolkit) {
  for (const Version isa :
       {Version{4, 3}, Version{6, 5}, Version{7, 8}, Version{8, 8}, Version{9, 0}, Version{10, 12}}) {
    const Buffer bytes = FatbinBuilder{}.ptx(arch_of(75), isa).build();
    EXPECT_EQ(images_of(bytes).at(0).isa, isa);
  }
}

// The wrapper is read as a structure, from files and from memory: its layout is the format.
TEST(FatbinWrapper, HasTheLayoutOfBothVersions) {
  EXPECT_EQ(offsetof(FatbinWrapper, magic), 0U);
  EXPECT_EQ(offsetof(FatbinWrapper, version), 4U);
  EXPECT_EQ(offsetof(FatbinWrapper, fatbin), 8U);
  EXPECT_EQ(offsetof(FatbinWrapper, prelinked), 16U);
  for (const std::uint32_t version : {1U, 2U}) {
    Buffer bytes;
    test::append(bytes, kWrapperMagic);
    test::append(bytes, version);
    test::append(bytes, std::uint64_t{0x1122334455667788});
    test::append(bytes, std::uint64_t{version == 2 ? 0x99U : 0U});
    EXPECT_EQ(identify(bytes), BlobKind::fatbin_wrapper);
    const auto wrapper = read_le<FatbinWrapper>(bytes, 0);
    ASSERT_TRUE(wrapper.ok());
    EXPECT_EQ(wrapper->version, version);
    EXPECT_EQ(wrapper->fatbin, 0x1122334455667788U);
    EXPECT_EQ(wrapper->prelinked, version == 2 ? 0x99U : 0U);
    bytes.pop_back();
    EXPECT_EQ(read_le<FatbinWrapper>(bytes, 0).error().code, Errc::truncated);
    EXPECT_EQ(FatbinReader::open(bytes).error().code, Errc::bad_magic) << "a wrapper is no fatbin";
  }
}

}  // namespace
}  // namespace kshim::image
