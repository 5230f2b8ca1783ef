// SPDX-License-Identifier: Apache-2.0
// Containers that lie, were cut off, or were made to eat memory and time: no crash, no hang, memory bounded,
// damage named with its place, and the rest still seen.
#include <gmock/gmock.h>

#include "analyzer/input/files/container.h"
#include "analyzer/input/files/container_stream.h"
#include "container_probe.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::StartsWith;

const Files kThree = {{"a.so", "first"}, {"b.so", std::string(3000, 'b')}, {"c.so", "third"}};

/// Every cut: what is seen is true, and what is missing is told of.
void cut_everywhere(const std::string& whole, const char* name, std::size_t members, std::size_t from) {
  const Seen all = visit(whole, name);
  ASSERT_EQ(all.members.size(), members);
  ASSERT_THAT(all.damage, IsEmpty());
  for (std::size_t size = from; size < whole.size(); ++size) {
    const Seen part = visit(whole.substr(0, size), name);
    EXPECT_THAT(all.members, IsSupersetOf(part.members)) << size;
    EXPECT_TRUE(part.members.size() == members || !part.damage.empty()) << size;
  }
}

TEST(Hostile, ZipCutOffAnywhere) {
  cut_everywhere(
      build_zip({stored("a.so", "first"), deflated("b.so", std::string(3000, 'b')), stored("c", "third")}),
      "a.zip", 3, 0);
}

TEST(Hostile, StreamedZipCutOffAnywhere) { cut_everywhere(pack(Packing::zip, kThree), "a.zip", 3, 0); }

TEST(Hostile, TarballsCutOffAnywhere) {
  cut_everywhere(pack(Packing::tar_gz, kThree), "a.tar.gz", 3, 0);
  cut_everywhere(pack(Packing::tar_zst, kThree), "a.tar.zst", 3, 0);
}

TEST(Hostile, StaticLibraryCutOffAnywhere) {
  const std::string library = "!<arch>\n" + ar_member("a.o/", "first") + ar_member("b.o/", "second");
  for (std::size_t size = 0; size < library.size(); ++size) {
    const Seen part = visit(library.substr(0, size), "a.a");
    EXPECT_LE(part.members.size(), 2U);
    EXPECT_LE(part.damage.size(), 1U) << size;
  }
}

TEST(Hostile, ACutZipStillShowsItsBeginning) {
  const std::string zip =
      build_zip({stored("a.so", "first"), deflated("b.so", std::string(3000, 'b')), stored("c", "x")});
  const Seen seen = visit(zip.substr(0, zip.find("PK\1\2")), "a.whl");
  EXPECT_THAT(seen.members, ElementsAre("a.so=first", StartsWith("b.so=bbb"), "c=x"));
  ASSERT_FALSE(seen.damage.empty());
  EXPECT_THAT(seen.damage[0], HasSubstr("has no directory that leads on"));
}

TEST(Hostile, ABrokenMemberHidesNothing) {
  ZipMember stream = deflated("stream.so", std::string(3000, 's'));
  stream.data[0] = '\xff';  // a block type that does not exist
  ZipMember sum = deflated("sum.so", std::string(3000, 's'));
  sum.crc ^= 1;
  ZipMember stored_sum = stored("stored.so", "contents");
  stored_sum.crc ^= 1;
  const Seen seen =
      visit(build_zip({stored("a.so", "ok"), stream, sum, stored_sum, stored("z.so", "ok")}), "a.whl");
  EXPECT_THAT(seen.members, ElementsAre("a.so=ok", "z.so=ok"));
  ASSERT_EQ(seen.damage.size(), 3U);
  const std::size_t first = 30 + 4 + 2 + 30 + 9;  // its data
  EXPECT_THAT(seen.damage[0],
              StartsWith("stream.so@" + std::to_string(first) + ": cannot be read (ZIP decompression"));
  EXPECT_THAT(seen.damage[1],
              StartsWith("sum.so@" + std::to_string(first + stream.data.size() + 30 + 6) + ": "));
  EXPECT_THAT(seen.damage[1], HasSubstr("bad CRC"));
  EXPECT_THAT(seen.damage[2], StartsWith("stored.so@"));
  EXPECT_THAT(seen.damage[2], HasSubstr("bad CRC"));
}

TEST(Hostile, ABrokenTarMemberIsNamed) {
  std::string tar = pack(Packing::tar, kThree);
  tar[512 + 512 + 148] ^= 1;  // the sum of the second header
  const Seen seen = visit(tar, "a.tar");
  EXPECT_THAT(seen.members, ElementsAre("a.so=first", "c.so=third"));
  ASSERT_FALSE(seen.damage.empty());
  EXPECT_THAT(seen.damage[0], StartsWith("@1024: is damaged ("));
}

TEST(Hostile, SizesThatLieInAnAr) {
  for (const char* size : {"4294967295", "4294967296", "9999999999"}) {
    const std::string library = "!<arch>\n" + ar_member("a.o/", "ok") + ar_header("b.o/", size) + "few";
    const Seen seen = visit(library, "a.a");
    EXPECT_THAT(seen.members, ElementsAre("a.o=ok"));
    EXPECT_THAT(seen.damage, ElementsAre("b.o@70: ends before the structure it announces"));
  }
}

TEST(Hostile, SizesThatLieInAZip) {
  for (const bool zip64 : {false, true}) {
    for (const std::uint64_t lie :
         {0xFFFFFFFEUL, 0xFFFFFFFFUL, 0x100000000UL, 0x100000008UL, UINT64_MAX - 1, UINT64_MAX - 40}) {
      if (!zip64 && lie > UINT32_MAX) continue;
      ZipMember larger = deflated("larger.so", "contents");
      larger.size = lie;
      ZipMember longer = deflated("longer.so", "contents");
      longer.compressed_size = lie;
      ZipMember both = stored("both.so", "contents");
      both.size = both.compressed_size = lie;
      ZipMember afar = stored("afar.so", "contents");
      for (ZipMember* member : {&larger, &longer, &both, &afar}) member->zip64 = zip64;
      afar.offset = lie;
      EXPECT_TRUE(survives(256, 20, [&] {
        const Seen seen =
            visit(build_zip({stored("a", "ok"), larger, longer, both, afar, stored("z", "ok")}), "a.zip");
        EXPECT_THAT(seen.members, testing::Contains("a=ok")) << lie;
        if (lie <= 0x100000008UL) {  // what libarchive takes for a size
          EXPECT_THAT(seen.members, testing::Contains("z=ok")) << lie;
        }
        EXPECT_THAT(seen.damage, testing::Contains(StartsWith("larger.so@"))) << lie << zip64;
        EXPECT_THAT(seen.damage, testing::Contains(HasSubstr("has no directory that leads on"))) << lie;
      }));
    }
  }
}

TEST(Hostile, AMemberThatIsLargerThanItSays) {
  ZipMember member = deflated("more.so", std::string(1'000'000, 'x'));
  member.size = 1000;
  const Seen seen = visit(build_zip({member, stored("z", "ok")}), "a.zip");
  EXPECT_THAT(seen.members, ElementsAre("z=ok"));
  EXPECT_THAT(seen.damage, ElementsAre("more.so@37: inflates to more than its header says"));
}

TEST(Hostile, EndRecordsThatLie) {
  const std::string zip = build_zip({stored("a", "ok")});
  for (const std::size_t field : {12U, 16U})
    for (const std::uint32_t lie : {1U, 45U, 1000U, 0x7FFFFFFFU, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
      std::string bent = zip;
      bent.replace(bent.size() - 22 + field, 4, reinterpret_cast<const char*>(&lie), 4);
      const Seen seen = visit(bent, "a.zip");
      EXPECT_TRUE(seen.damage.size() + seen.members.size() >= 1) << field << " " << lie;
    }
  for (const std::uint64_t lie : {std::uint64_t{0}, std::uint64_t{31}, UINT64_MAX, UINT64_MAX - 55}) {
    std::string locator = "PK\6\7";
    put(locator, std::uint32_t{0});
    put(locator, lie);
    put(locator, std::uint32_t{1});
    std::string bent = zip;
    bent.insert(bent.size() - 22, locator);
    EXPECT_THAT(visit(bent, "a.zip").members, ElementsAre("a=ok")) << lie;
  }
}

TEST(Hostile, OverlappingMembersAreNotInflatedAgain) {
  ZipMember kernel = deflated("0", std::string(20'000'000, 'x'));
  std::vector<ZipMember> members = {kernel};
  kernel.offset = 0;
  for (int i = 1; i < 2000; ++i) {  // 40 GB, if believed
    kernel.name = std::to_string(i);
    members.push_back(kernel);
  }
  const std::string zip = build_zip(members);
  EXPECT_TRUE(survives(256, 30, [&] {
    std::uint64_t visited = 0;
    ContainerVisitor visitor;
    visitor.visit = [&](const Member&) { ++visited; };
    each_member(bytes_of(zip), "a.zip", {}, visitor);
    EXPECT_EQ(visited, 1U);
  }));
}

TEST(Hostile, AZipThatContainsItself) {
  // Its only member is stored and spans the whole file, directory included.
  ZipMember self = stored("self.zip", "");
  self.offset = 0;
  const std::size_t directory = 46 + self.name.size();
  const std::size_t total = 38 + directory + 22;
  ZipMember outer = self;
  outer.offset = UINT64_MAX;
  outer.size = outer.compressed_size = total - 38;
  const std::string zip = build_zip({outer});
  ASSERT_EQ(zip.size(), total);
  const Seen seen = visit(zip, "a.zip");
  EXPECT_THAT(seen.members, IsEmpty());
  EXPECT_FALSE(seen.damage.empty());
  std::string quine = "PK\5\6";
  for (int i = 0; i < 8; ++i) quine = build_zip({stored("deeper.zip", quine), stored("leaf", "x")});
  const Seen deep = visit(quine, "a.zip");
  EXPECT_EQ(deep.members.size(), 5U);
  EXPECT_THAT(deep.damage, ElementsAre(HasSubstr("lies in more than 4 containers: not opened")));
}

TEST(Hostile, FlatBombs) {
  const std::string zeros(64U << 20U, '\0');
  ContainerLimits limits;
  limits.member_bytes = 8U << 20U;
  ZipMember honest = deflated("honest", zeros);
  ZipMember liar = honest;
  liar.name = "liar";
  liar.size = 1U << 20U;
  const std::string zip = build_zip({honest, liar, stored("z", "ok")});
  const std::string tar = pack(Packing::tar_zst, {{"bomb", zeros}, {"z", "ok"}});
  EXPECT_TRUE(survives(96, 30, [&] {
    const Seen seen = visit(zip, "a.zip", limits);
    EXPECT_THAT(seen.members, ElementsAre("z=ok"));
    EXPECT_THAT(seen.damage,
                ElementsAre(StartsWith("honest@36: has 67108864 bytes; members of more than 8388608"),
                            HasSubstr("inflates to more than its header says")));
    const Seen tarball = visit(tar, "a.tar.zst", limits);
    EXPECT_THAT(tarball.members, ElementsAre("z=ok"));
    EXPECT_THAT(tarball.damage, ElementsAre(StartsWith("bomb@0: has 67108864 bytes")));
  }));
  limits.total_bytes = 32U << 20U;
  const Seen seen = visit(tar, "a.tar.zst", limits);
  EXPECT_THAT(seen.members, IsEmpty());
  EXPECT_THAT(seen.damage, testing::Contains(HasSubstr("inflates to more than 33554432 bytes")));
}

TEST(Hostile, ContainersThatCountAsOneShareABudget) {
  const std::string tar = pack(Packing::tar_zst, {{"a", std::string(1U << 20U, 'a')}});
  ByteBudget budget(5U << 19U);  // two and a half
  Seen seen;
  ContainerVisitor visitor = visitor_of(seen);
  visitor.budget = &budget;
  for (int i = 0; i < 4; ++i) each_member(bytes_of(tar), "a.tar.zst", {}, visitor);
  EXPECT_THAT(seen.members, testing::SizeIs(2));
  EXPECT_THAT(seen.damage, testing::Contains(HasSubstr("is not read")));
}

TEST(Hostile, NestedBombs) {
  Files level = {{"0", std::string(4U << 20U, '\0')}};
  std::string bomb = pack(Packing::zip, level);
  for (int depth = 0; depth < 4; ++depth) {
    Files files;
    for (int i = 0; i < 16; ++i) files.emplace_back(std::to_string(i) + ".zip", bomb);
    bomb = pack(Packing::zip, files);
  }
  ContainerLimits limits;
  limits.total_bytes = 256U << 20U;
  EXPECT_TRUE(survives(128, 30, [&] {
    std::uint64_t bytes = 0;
    ContainerVisitor visitor;
    std::string last;
    visitor.visit = [&](const Member& member) { bytes += member.bytes.size(); };
    visitor.damaged = [&](std::string_view, std::uint64_t, const std::string& clause) { last = clause; };
    each_member(bytes_of(bomb), "bomb.zip", limits, visitor);
    EXPECT_LE(bytes, limits.total_bytes);
    EXPECT_THAT(last, HasSubstr("inflates to more than 268435456 bytes"));
  }));
  limits.members = 100;
  const Seen seen = visit(bomb, "bomb.zip", limits);
  EXPECT_THAT(seen.damage, testing::Contains(HasSubstr("holds more than 100 members")));
}

TEST(Hostile, FiltersInFilters) {
  // A gzip stream in a zstd stream multiplies what a block inflates to.
  const std::string tar = pack(Packing::tar_gz, kThree);
  archive* writer = archive_write_new();
  std::string twice(1U << 20U, '\0');
  std::size_t used = 0;
  archive_write_set_format_raw(writer);
  archive_write_add_filter_zstd(writer);
  archive_write_open_memory(writer, twice.data(), twice.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, tar.data(), tar.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  twice.resize(used);
  const Seen seen = visit(twice, "a.tar.zst");
  EXPECT_THAT(seen.members, IsEmpty());
  EXPECT_THAT(seen.damage, ElementsAre("@0: cannot be read further (compressed more than once)"));
}

TEST(Hostile, MapsOfSparseFilesAreBounded) {
  // An old GNU sparse header whose map goes on and on: 512 bytes of a map become a kilobyte of lists.
  std::string header = pack(Packing::tar, {{"sparse", ""}}).substr(0, 512);
  header[156] = 'S';
  header.replace(257, 8, std::string("ustar  \0", 8));
  header.replace(345, 167, 167, '\0');
  for (int i = 0; i < 4; ++i)
    header.replace(static_cast<std::size_t>(386 + 24 * i), 24, "00000000000 00000000000 ");
  header[482] = 1;  // the map goes on
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char octal[8];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  header.replace(148, 7, octal, 7);
  std::string block;
  for (int i = 0; i < 21; ++i) block += "00000000000 00000000000 ";
  block.push_back(1);
  block.resize(512, '\0');
  std::string tar = header;
  for (int i = 0; i < 400'000; ++i) tar += block;  // 200 MB
  EXPECT_TRUE(survives(128, 30, [&] {
    const Seen seen = visit(tar, "a.tar");
    EXPECT_THAT(seen.members, IsEmpty());
    EXPECT_THAT(seen.damage, ElementsAre(HasSubstr("a header is larger than 16777216 bytes")));
  }));
}

TEST(Hostile, NamesPassAsTheyAre) {
  const std::vector<std::string> names = {"../../etc/passwd", "/abs/olute", "\x1b[2Jgone\x07", "n\x01l",
                                          "\u202Etxt.so"};
  std::vector<ZipMember> members;
  std::vector<std::string> expected;
  for (const std::string& name : names) {
    members.push_back(stored(name, "x"));
    members.back().flags = 1U << 11U;  // "is UTF-8"
    expected.push_back(name + "=x");
  }
  EXPECT_EQ(visit(build_zip(members), "a.zip").members, expected);
  Files files;
  for (const std::string& name : names) files.emplace_back(name, "x");
  EXPECT_EQ(visit(pack(Packing::tar, files), "a.tar").members, expected);
}

TEST(Hostile, EncryptedMembersAreTold) {
  ZipMember secret = stored("secret.so", "0123456789abcontents");
  secret.flags = 1;
  const std::string zip = build_zip({secret, stored("z", "ok")});
  const Seen seen = visit(zip, "a.zip");
  EXPECT_THAT(seen.members, ElementsAre("z=ok"));
  EXPECT_THAT(seen.damage, ElementsAre("secret.so@39: is encrypted"));
  EXPECT_THAT(visit(zip.substr(0, zip.size() - 10), "a.zip").damage,
              testing::Contains(HasSubstr("is encrypted")));
}

TEST(Hostile, UnknownMethodsAreTold) {
  ZipMember odd = stored("odd.so", "contents");
  odd.method = 99;
  const Seen seen = visit(build_zip({odd, stored("z", "ok")}), "a.zip");
  EXPECT_THAT(seen.members, ElementsAre("z=ok"));
  EXPECT_THAT(seen.damage,
              ElementsAre(HasSubstr("odd.so@36: cannot be read (Unsupported ZIP compression method")));
}

TEST(Hostile, EmptyContainers) {
  for (const auto& [bytes, name] : Files{{build_zip({}), "a.zip"},
                                         {"!<arch>\n", "a.a"},
                                         {pack(Packing::tar, {}), "a.tar"},
                                         {pack(Packing::tar_gz, {}), "a.tar.gz"}}) {
    if (container_kind(bytes_of(bytes), name) == ContainerKind::none) continue;  // a tar of zeros only
    const Seen seen = visit(bytes, name);
    EXPECT_THAT(seen.members, IsEmpty()) << name;
    EXPECT_THAT(seen.damage, IsEmpty()) << name;
  }
  EXPECT_THAT(visit("", "a.zip").damage, ElementsAre("@0: is not a container that is known"));
}

TEST(Hostile, AVisitorMayThrow) {
  ContainerVisitor visitor;
  visitor.visit = [](const Member&) { throw 7; };
  for (const Packing packing : {Packing::tar_gz, Packing::zip}) {
    const std::string inner = pack(packing, kThree);
    const std::string outer =
        pack(Packing::tar_xz, {{packing == Packing::zip ? "i.zip" : "i.tar.gz", inner}});
    EXPECT_THROW(each_member(bytes_of(outer), "o.tar.xz", {}, visitor), int);
  }
}

TEST(HostileContainer, ASmallOneDoesNotInflateWithoutEnd) {
  const ContainerLimits limits;
  EXPECT_LT(limits.of(13'000), std::uint64_t{300} << 20U);
  EXPECT_EQ(limits.of(std::uint64_t{2} << 30U), limits.total_bytes);
  const std::string bomb = pack(Packing::tar_zst, {{"zeros.bin", std::string(300'000'000, '\0')}});
  ASSERT_LT(limits.of(bomb.size()), 300'000'000U);
  const Seen seen = visit(bomb, "a.tar.zst");
  EXPECT_TRUE(seen.members.empty());
  ASSERT_FALSE(seen.damage.empty());
  EXPECT_NE(seen.damage.front().find("beyond the limit"), std::string::npos) << seen.damage.front();
}

// libarchive hands out bytes that none of its filters takes as they are.
TEST(HostileContainer, WhatOnlyBeginsLikeAStreamIsNotOpenedInItself) {
  const std::string bytes =
      std::string("\x1f\x8b\x08\x08", 4) + std::string(100'000, 'x');  // its name has no end
  const Seen seen = visit(bytes, "a");
  EXPECT_THAT(seen.members, IsEmpty());
  EXPECT_THAT(seen.damage, ElementsAre("a@0: begins like a compressed stream, and is none"));
}

}  // namespace
}  // namespace kshim::test
