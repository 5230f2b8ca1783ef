// SPDX-License-Identifier: Apache-2.0
// Packings that few wheels use but that a zip, a tarball or a conda package may: read, or told of.
#include <gmock/gmock.h>

#include "container_probe.h"

namespace kshim::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// `contents` through one filter, and no archive around it.
std::string filtered(int (*filter)(archive*), const std::string& contents) {
  archive* writer = archive_write_new();
  std::string out(contents.size() + (1U << 20U), '\0');
  std::size_t used = 0;
  archive_write_set_format_raw(writer);
  EXPECT_EQ(filter(writer), ARCHIVE_OK);
  archive_write_set_bytes_per_block(writer, 0);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, contents.data(), contents.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

struct Method {
  std::uint16_t number;
  int (*filter)(archive*);
};

/// A member by one of the methods that APPNOTE 4.4.5 adds to deflate.
ZipMember by_method(const Method& method, const std::string& contents) {
  ZipMember member{.name = "m" + std::to_string(method.number) + ".so",
                   .data = filtered(method.filter, contents),
                   .method = method.number,
                   .crc = crc32_of(contents),
                   .size = contents.size()};
  if (method.number == 14) {
    // 5.8.8: a version, the size of the properties, these, the stream, its end marked. A .lzma file has the
    // size of the contents behind its properties.
    member.data = std::string("\x09\x04\x05\x00", 4) + member.data.substr(0, 5) + member.data.substr(13);
    member.flags = 2;
  }
  member.compressed_size = member.data.size();
  return member;
}

class ZipMethod : public testing::TestWithParam<Method> {};

std::string some_text() {
  std::string out;
  for (int i = 0; i < 30'000; ++i) out += std::to_string(i * 7919);
  return out;
}

TEST_P(ZipMethod, IsRead) {
  const ZipMember member = by_method(GetParam(), some_text());
  const Seen seen = visit(build_zip({stored("a", "1"), member, stored("z", "2")}), "a.whl");
  EXPECT_THAT(seen.damage, IsEmpty());
  EXPECT_THAT(seen.members, ElementsAre("a=1", member.name + "=" + some_text(), "z=2"));
}

TEST_P(ZipMethod, DamageIsTold) {
  ZipMember wrong_sum = by_method(GetParam(), some_text());
  wrong_sum.crc ^= 1;
  ZipMember cut = by_method(GetParam(), some_text());
  cut.name = "cut";
  cut.compressed_size = cut.data.size() / 2;
  cut.data.resize(cut.compressed_size);
  ZipMember nonsense = by_method(GetParam(), some_text());
  nonsense.name = "nonsense";
  for (std::size_t at = 20; at < nonsense.data.size(); at += 3) nonsense.data[at] ^= 0x55;
  const Seen seen = visit(build_zip({wrong_sum, cut, nonsense, stored("z", "2")}), "a.whl");
  EXPECT_THAT(seen.members, ElementsAre("z=2"));
  ASSERT_EQ(seen.damage.size(), 3U);
  EXPECT_THAT(seen.damage[0], HasSubstr(wrong_sum.name + "@36: "));
  EXPECT_THAT(seen.damage[1], HasSubstr("cut@"));
  EXPECT_THAT(seen.damage[2], HasSubstr("nonsense@"));
}

INSTANTIATE_TEST_SUITE_P(All, ZipMethod,
                         testing::Values(Method{12, archive_write_add_filter_bzip2},
                                         Method{14, archive_write_add_filter_lzma},
                                         Method{93, archive_write_add_filter_zstd},
                                         Method{95, archive_write_add_filter_xz}),
                         [](const auto& each) { return std::to_string(each.param.number); });

/// A tar's header with a name of exactly these bytes.
std::string tar_member(std::string name, const std::string& contents, char type = '0') {
  std::string header = pack(Packing::tar, {{"x", contents}}).substr(0, 512);
  name.resize(100, '\0');
  header.replace(0, 100, name);
  header[156] = type;
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char octal[8];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  header.replace(148, 7, octal, 7);
  std::string body = contents;
  body.resize((contents.size() + 511) / 512 * 512, '\0');
  return header + body;
}

TEST(TarNames, EndAtTheirNul) {
  // As for every tar program: what stands behind the NUL is no part of the name.
  using namespace std::string_literals;
  const std::string tar = tar_member("a.so\0b.txt"s, "one") + tar_member("\0hidden.so"s, "two") +
                          tar_member("@LongLink", "gnu.so\0tail"s, 'L') + tar_member("x", "three") +
                          tar_member("z.so", "last") + std::string(1024, '\0');
  const Seen seen = visit(tar, "a.tar");
  EXPECT_THAT(seen.members, ElementsAre("a.so=one", "=two", "gnu.so=three", "z.so=last"));
  EXPECT_THAT(seen.damage, IsEmpty());
  const std::string extended = tar_member("pax", "23 path=longer\0name.so\n"s, 'x') +
                               tar_member("short", "one") + tar_member("z.so", "last") +
                               std::string(1024, '\0');
  const Seen other = visit(extended, "a.tar");
  EXPECT_THAT(other.members, ElementsAre("longer=one", "z.so=last"));
  EXPECT_THAT(other.damage, IsEmpty());
}

TEST(Conda, AsItsBuilderMakesIt) {
  // Two tarballs in an uncompressed zip. The package's own comes before the one that describes it.
  const std::string stem = "cudalib-1.2.3-h0123abc_4.tar.zst";
  const Files package = {{"lib/", ""}, {"lib/libone.so.1.2.3", "code"}, {"include/one.h", "text"}};
  const Files info = {{"info/index.json", R"({"name": "cudalib"})"}, {"info/paths.json", "{}"}};
  const std::string conda = build_zip({stored("metadata.json", R"({"conda_pkg_format_version": 2})"),
                                       stored("pkg-" + stem, pack(Packing::tar_zst, package)),
                                       stored("info-" + stem, pack(Packing::tar_zst, info))});
  EXPECT_EQ(container_kind(bytes_of(conda), "cudalib-1.2.3-h0123abc_4.conda"), ContainerKind::zip);
  Seen seen;
  ContainerVisitor visitor = visitor_of(seen);
  visitor.wants = [&](std::string_view name, std::uint64_t size) {
    EXPECT_NE(size, kUnknownSize);
    return name.find(".so") != std::string_view::npos;
  };
  each_member(bytes_of(conda), "cudalib-1.2.3-h0123abc_4.conda", {}, visitor);
  EXPECT_THAT(seen.members, ElementsAre("pkg-" + stem + "!lib/libone.so.1.2.3=code"));
  EXPECT_THAT(seen.damage, IsEmpty());
}

}  // namespace
}  // namespace kshim::test
