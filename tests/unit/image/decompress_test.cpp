// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/decompress.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fatbin_builder.h"
#include "packed_payload.h"

namespace kshim::image {
namespace {

using test::Buffer;

/// Text that compresses, but not to nothing.
Buffer plain_of(std::size_t size) {
  Buffer out;
  for (std::size_t i = 0; out.size() < size; ++i) test::append(out, std::to_string(i * 7919) + " ");
  out.resize(size);
  return out;
}

/// An entry as FatbinReader yields it; the payload must outlive it.
Image image_of(Compression compression, const Buffer& payload, std::uint64_t uncompressed_size) {
  Image image;
  image.compression = compression;
  image.payload = payload;
  image.uncompressed_size = uncompressed_size;
  image.offset = 16;
  return image;
}

Errc code_of(const Image& image, std::uint64_t ceiling = kPayloadCeiling) {
  Buffer out(32);  // left over from the payload before
  const auto size = decompress(image, out, ceiling);
  EXPECT_FALSE(size.ok());
  EXPECT_TRUE(out.empty()) << "an error leaves nothing behind";
  EXPECT_EQ(size.error().offset, image.offset);
  return size.error().code;
}

class EachMethod : public testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(Decompress, EachMethod, testing::Values(Compression::lz4, Compression::zstd),
                         [](const auto& each) { return each.param == Compression::lz4 ? "lz4" : "zstd"; });

TEST_P(EachMethod, GivesBackWhatWasPacked) {
  for (const std::size_t size : {1U, 64U, 5000U, 300000U}) {
    const Buffer plain = plain_of(size);
    const Buffer packed = test::pack(GetParam(), plain);
    Buffer out;
    const auto result = decompress(image_of(GetParam(), packed, plain.size()), out);
    ASSERT_TRUE(result.ok()) << size;
    EXPECT_EQ(*result, size);
    EXPECT_EQ(out, plain) << size;
  }
}

TEST_P(EachMethod, RefusesAPayloadCutOffAnywhere) {
  const Buffer plain = plain_of(2000);
  const Buffer packed = test::pack(GetParam(), plain);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const Buffer cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(code_of(image_of(GetParam(), cut, plain.size())), Errc::corrupt_payload) << size;
  }
}

TEST_P(EachMethod, RefusesAPayloadOfAnotherLength) {
  const Buffer packed = test::pack(GetParam(), plain_of(2000));
  EXPECT_EQ(code_of(image_of(GetParam(), packed, 1999)), Errc::corrupt_payload);
  EXPECT_EQ(code_of(image_of(GetParam(), packed, 2001)), Errc::corrupt_payload);
}

TEST_P(EachMethod, RefusesGarbage) {
  EXPECT_EQ(code_of(image_of(GetParam(), Buffer(64, std::byte{0xff}), 500)), Errc::corrupt_payload);
}

TEST_P(EachMethod, RefusesAnEmptyPayload) {
  EXPECT_EQ(code_of(image_of(GetParam(), {}, 100)), Errc::corrupt_payload);
}

TEST_P(EachMethod, RefusesAnUncompressedSizeOfZero) {
  const Buffer packed = test::pack(GetParam(), plain_of(100));
  EXPECT_EQ(code_of(image_of(GetParam(), packed, 0)), Errc::bad_header);
}

TEST_P(EachMethod, HoldsTheCeiling) {
  const Buffer plain = plain_of(1000);
  const Buffer packed = test::pack(GetParam(), plain);
  EXPECT_EQ(code_of(image_of(GetParam(), packed, 1000), 999), Errc::too_large);
  Buffer out;
  EXPECT_TRUE(decompress(image_of(GetParam(), packed, 1000), out, 1000).ok());
}

TEST_P(EachMethod, RefusesASizeNear64Bits) {
  const Buffer packed = test::pack(GetParam(), plain_of(100));
  EXPECT_EQ(code_of(image_of(GetParam(), packed, UINT64_MAX)), Errc::too_large);
}

// A bomb that tells the truth: 16 MiB of zeros in a few KB. It is let through up to the ceiling, and no
// further.
TEST_P(EachMethod, UnpacksARealBombOnlyUpToTheCeiling) {
  const Buffer plain(16 << 20);
  const Buffer packed = test::pack(GetParam(), plain);
  ASSERT_LT(packed.size(), plain.size() / 200);
  EXPECT_EQ(code_of(image_of(GetParam(), packed, plain.size()), 1 << 20), Errc::too_large);
  Buffer out;
  EXPECT_TRUE(decompress(image_of(GetParam(), packed, plain.size()), out).ok());
}

// A bomb that lies: a claim below the ceiling that the format cannot hold costs no memory.
TEST_P(EachMethod, RefusesAClaimThatTheFormatCannotHoldWithoutTakingMemory) {
  const Buffer packed = test::pack(GetParam(), plain_of(100));
  Buffer out;
  EXPECT_EQ(decompress(image_of(GetParam(), packed, kPayloadCeiling), out).error().code,
            Errc::corrupt_payload);
  EXPECT_LT(out.capacity(), 1U << 20);
}

TEST(Decompress, RefusesAMethodItDoesNotKnow) {
  const Buffer payload(64);
  EXPECT_EQ(code_of(image_of(Compression::unknown, payload, 100)), Errc::unknown_compression);
  EXPECT_EQ(code_of(image_of(Compression::unknown, payload, 0)), Errc::unknown_compression);
}

TEST(Decompress, CopiesAStoredPayload) {
  const Buffer payload = plain_of(100);
  Buffer out(7);
  EXPECT_EQ(*decompress(image_of(Compression::none, payload, 100), out), 100U);
  EXPECT_EQ(out, payload);
  EXPECT_EQ(code_of(image_of(Compression::none, payload, 100), 99), Errc::too_large);
}

TEST(Decompress, ReadsWhatTheFatbinReaderYields) {
  const Buffer plain = plain_of(1003);
  for (const auto method : {Compression::none, Compression::lz4, Compression::zstd}) {
    test::EntrySpec entry{.arch = test::arch_of(90),
                          .payload = test::pack(method, plain),
                          .compression = method,
                          .uncompressed_size = plain.size()};
    const Buffer fatbin = test::FatbinBuilder{}.add(entry).build();
    FatbinReader reader = *FatbinReader::open(fatbin);
    Buffer out;
    ASSERT_TRUE(decompress(*reader.next(), out).ok());
    out.resize(plain.size());  // a stored payload keeps its padding
    EXPECT_EQ(out, plain);
  }
}

}  // namespace
}  // namespace kshim::image
