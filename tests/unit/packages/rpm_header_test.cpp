// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "analyzer/owner/databases.h"
#include "rpm_fixture.h"

namespace kshim::packages {
namespace {

using test::RpmBlob;

std::optional<RpmHeader> open(const std::string& blob) { return RpmHeader::open(bytes_of(blob)); }

TEST(RpmHeader, TellsNameVersionAndFiles) {
  const std::string blob = RpmBlob::libfoo().blob();
  const auto header = open(blob);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->text(RpmHeader::kName), "libfoo");
  EXPECT_EQ(header->version(), "1.4-7.el9");
  EXPECT_EQ(header->file(0), "/usr/lib64/libfoo.so.1");
  EXPECT_EQ(header->file(1), "/opt/foo/libfoo.so.1");
  EXPECT_EQ(header->file(2), std::nullopt);
}
TEST(RpmHeader, TheEpochStandsInFront) {
  const std::string blob = RpmBlob::libfoo().numbers(1003, {2}).blob();
  EXPECT_EQ(open(blob)->version(), "2:1.4-7.el9");
  const std::string zero = RpmBlob::libfoo().numbers(1003, {0}).blob();
  EXPECT_EQ(open(zero)->version(), "1.4-7.el9");
}
TEST(RpmHeader, OldHeadersHaveWholePaths) {
  const std::string blob = RpmBlob().text(1000, "x").texts(1027, {"/a", "/b/c"}).blob();
  EXPECT_EQ(open(blob)->file(1), "/b/c");
}
TEST(RpmHeader, EveryCutIsRefusedOrReadSafely) {
  const std::string blob = RpmBlob::libfoo().blob();
  for (std::size_t size = 0; size < blob.size(); ++size) {
    const std::string cut = blob.substr(0, size);
    EXPECT_FALSE(open(cut)) << size;
  }
}
TEST(RpmHeader, CountsThatAreTooLargeAreRefused) {
  EXPECT_FALSE(open(RpmBlob::big(0) + RpmBlob::big(0)));
  EXPECT_FALSE(open(RpmBlob::big(0xffffffff) + RpmBlob::big(0xffffffff)));
  EXPECT_FALSE(open(RpmBlob::big(0x10000) + RpmBlob::big(0) + std::string(0x10000 * 16, '\0')));
  EXPECT_FALSE(open(RpmBlob::big(1) + RpmBlob::big(0x10000000) + std::string(100, '\0')));
}
TEST(RpmHeader, OffsetsOutsideOfTheHeapAreAbsent) {
  const std::string blob = RpmBlob()
                               .entry(1000, 6, 0xfffffff0, 1)
                               .entry(1116, 4, 0xfffffffe, 0xffffffff)
                               .add(1117, 8, 9, "x")
                               .blob();
  const auto header = open(blob);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->text(RpmHeader::kName), "");
  EXPECT_EQ(header->number_at(1116, 0), std::nullopt);
  EXPECT_EQ(header->number_at(1116, 0xfffffffe), std::nullopt);
}
TEST(RpmHeader, ATextWithoutItsEndIsAbsent) {
  const std::string blob = RpmBlob().add(1000, 6, 1, "libfoo").blob();
  EXPECT_EQ(open(blob)->text(RpmHeader::kName), "");
}
TEST(RpmHeader, AListThatPromisesMoreThanItHoldsEnds) {
  const std::string blob = RpmBlob().add(1117, 8, 0xffffffff, std::string("a\0b\0", 4)).blob();
  EXPECT_EQ(open(blob)->text_at(1117, 1), "b");
  EXPECT_EQ(open(blob)->text_at(1117, 2), std::nullopt);
  EXPECT_EQ(open(blob)->text_at(1117, 0xfffffffe), std::nullopt);
}
TEST(RpmHeader, OtherTypesAreAbsent) {
  const std::string blob = RpmBlob().numbers(1000, {1}).text(1116, "x").text(1117, "x").blob();
  EXPECT_EQ(open(blob)->text(RpmHeader::kName), "");
  EXPECT_EQ(open(blob)->number_at(1116, 0), std::nullopt);
  EXPECT_EQ(open(blob)->text_at(1117, 0), std::nullopt);
}
TEST(RpmHeader, AFolderNumberOutsideOfTheListIsNoFile) {
  const std::string blob = RpmBlob().numbers(1116, {7}).texts(1117, {"x"}).texts(1118, {"/a/"}).blob();
  EXPECT_EQ(open(blob)->file(0), std::nullopt);
}

}  // namespace
}  // namespace kshim::packages
