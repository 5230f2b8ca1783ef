// SPDX-License-Identifier: Apache-2.0
// Sound containers: what is in them is seen, once, and no more is read than was asked for.
#include "analyzer/input/files/container.h"

#include <gmock/gmock.h>

#include "analyzer/input/files/file_kind.h"
#include "container_probe.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Longer than any block, and not a repetition.
std::string long_text(std::size_t size) {
  std::string out;
  std::uint32_t state = 1;
  while (out.size() < size) {
    state = state * 1664525U + 1013904223U;
    out.push_back(static_cast<char>('a' + (state >> 28U)));
  }
  return out;
}

const Files kFiles = {
    {"pkg/", ""}, {"pkg/one.so", "first"}, {"pkg/empty", ""}, {"pkg/two.so", long_text(300'000)}};

struct Packed {
  Packing packing;
  const char* name;
};

class EachPacking : public testing::TestWithParam<Packed> {};

TEST_P(EachPacking, ShowsEveryMember) {
  const Seen seen = visit(pack(GetParam().packing, kFiles), GetParam().name);
  EXPECT_THAT(seen.damage, IsEmpty());
  EXPECT_THAT(seen.asked, ElementsAre("pkg/one.so", "pkg/two.so"));
  EXPECT_THAT(seen.members, ElementsAre("pkg/one.so=first", "pkg/two.so=" + kFiles[3].second));
}

TEST_P(EachPacking, ReadsOnlyWhatIsWanted) {
  const std::string bytes = pack(GetParam().packing, kFiles);
  Seen seen;
  ContainerVisitor visitor = visitor_of(seen);
  std::vector<std::uint64_t> sizes;
  visitor.wants = [&](std::string_view name, std::uint64_t size) {
    sizes.push_back(size);
    return name == "pkg/two.so";
  };
  std::string first;
  visitor.wants_content = [&](std::string_view name, Bytes head) {
    first = std::string(name) + "=" + std::string(text_of(head));
    return false;
  };
  each_member(bytes_of(bytes), GetParam().name, {}, visitor);
  EXPECT_THAT(sizes, ElementsAre(5, 300'000));
  EXPECT_EQ(first, "pkg/two.so=" + kFiles[3].second.substr(0, kFirstBytes));
  EXPECT_THAT(seen.members, IsEmpty());
  EXPECT_THAT(seen.damage, IsEmpty());
}

TEST_P(EachPacking, NestsInAWheel) {
  const std::string inner = pack(GetParam().packing, kFiles);
  const std::string wheel = pack(Packing::zip, {{GetParam().name, inner}, {"z.so", "last"}});
  const Seen seen = visit(wheel, "a.whl");
  EXPECT_THAT(seen.damage, IsEmpty());
  const std::string prefix = std::string(GetParam().name) + "!";
  EXPECT_THAT(seen.members, ElementsAre(prefix + "pkg/one.so=first",
                                        prefix + "pkg/two.so=" + kFiles[3].second, "z.so=last"));
}

TEST_P(EachPacking, HoldsAWheel) {
  const std::string wheel = pack(Packing::zip, kFiles);
  const Seen seen = visit(pack(GetParam().packing, {{"b.whl", wheel}, {"z.so", "last"}}), GetParam().name);
  EXPECT_THAT(seen.damage, IsEmpty());
  EXPECT_THAT(seen.members,
              ElementsAre("b.whl!pkg/one.so=first", "b.whl!pkg/two.so=" + kFiles[3].second, "z.so=last"));
}

INSTANTIATE_TEST_SUITE_P(All, EachPacking,
                         testing::Values(Packed{Packing::tar, "a.tar"}, Packed{Packing::tar_gz, "a.tar.gz"},
                                         Packed{Packing::tar_gz, "A.TGZ"},
                                         Packed{Packing::tar_bz2, "a.tar.bz2"},
                                         Packed{Packing::tar_xz, "a.tar.xz"},
                                         Packed{Packing::tar_zst, "a.tar.zst"}, Packed{Packing::zip, "a.zip"},
                                         Packed{Packing::zip_stored, "a.whl"}));

TEST(Container, CondaPackages) {
  const std::string conda = build_zip({stored("metadata.json", "{}"),
                                       stored("info-x.tar.zst", pack(Packing::tar_zst, {{"info/i", "json"}})),
                                       stored("pkg-x.tar.zst", pack(Packing::tar_zst, kFiles))});
  const Seen seen = visit(conda, "x.conda");
  EXPECT_THAT(seen.damage, IsEmpty());
  EXPECT_THAT(seen.members,
              ElementsAre("metadata.json={}", "info-x.tar.zst!info/i=json", "pkg-x.tar.zst!pkg/one.so=first",
                          "pkg-x.tar.zst!pkg/two.so=" + kFiles[3].second));
}

TEST(Container, StaticLibraries) {
  const std::string library = "!<arch>\n" + ar_member("a.o/", "odd") + ar_member("b.o/", "even");
  EXPECT_THAT(visit(library, "libx.a").members, ElementsAre("a.o=odd", "b.o=even"));
  const Seen seen = visit(pack(Packing::zip, {{"lib/libx.a", library}}), "x.whl");
  EXPECT_THAT(seen.members, ElementsAre("lib/libx.a!a.o=odd", "lib/libx.a!b.o=even"));
}

TEST(Container, KindByFirstBytes) {
  const auto kind = [](const std::string& bytes, const char* name) {
    return container_kind(bytes_of(bytes), name);
  };
  EXPECT_EQ(kind("!<arch>\n", "x"), ContainerKind::ar);
  EXPECT_EQ(kind("!<thin>\n", "x"), ContainerKind::ar);
  EXPECT_EQ(kind(build_zip({}), "x"), ContainerKind::zip);
  EXPECT_EQ(kind(pack(Packing::zip, kFiles), "x"), ContainerKind::zip);
  EXPECT_EQ(kind(pack(Packing::tar, kFiles), "x"), ContainerKind::tar);
  std::string old = pack(Packing::tar, kFiles).substr(0, 512);
  unsigned sum = 0;
  old.replace(257, 8, 8, '\0');
  old.replace(148, 8, 8, ' ');
  for (const char c : old) sum += static_cast<unsigned char>(c);
  char octal[8];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  old.replace(148, 7, octal, 7);
  EXPECT_EQ(kind(old, "x.tar"), ContainerKind::tar);
  EXPECT_EQ(kind(old, "x.so"), ContainerKind::none);
  for (const Packing packing : {Packing::tar_gz, Packing::tar_bz2, Packing::tar_xz, Packing::tar_zst}) {
    EXPECT_EQ(kind(pack(packing, kFiles).substr(0, 64), "x.tar.zst"), ContainerKind::tar);
    EXPECT_EQ(kind(pack(packing, kFiles), "x.zst"), ContainerKind::packed) << "not said to be a tarball";
  }
  EXPECT_EQ(kind("\x7f"
                 "ELF",
                 "x.whl"),
            ContainerKind::none);
  EXPECT_EQ(kind("", "x.tar.gz"), ContainerKind::none);
}

TEST(Container, ProgressReachesTheEnd) {
  for (const auto& [packing, name] : {Packed{Packing::zip, "a.zip"}, Packed{Packing::tar_xz, "a.tar.xz"}}) {
    const std::string bytes = pack(packing, kFiles);
    ContainerVisitor visitor;
    std::uint64_t last = 0;
    visitor.progress = [&](std::uint64_t done) {
      EXPECT_GE(done, last);
      last = done;
    };
    each_member(bytes_of(bytes), name, {}, visitor);
    EXPECT_LE(last, bytes.size());
    EXPECT_GT(last, bytes.size() * 9 / 10);
  }
}

TEST(Container, AZipBehindSomethingElse) {
  const std::vector<ZipMember> members = {stored("PK\3\4", "zip in front"), stored("b", "two")};
  const std::string zip = "PK\3\4 not a header" + std::string(100, 'x');
  EXPECT_THAT(visit(build_zip(members, zip), "a.zip").members, ElementsAre("PK\3\4=zip in front", "b=two"));
}

TEST(Container, LinksAndFoldersAreNoMembers) {
  ZipMember link = stored("link.so", "libx.so.1");
  link.attributes = 0120777U << 16U;
  EXPECT_THAT(visit(build_zip({link, stored("dir/", "what?"), stored("a", "1")}), "a.zip").members,
              ElementsAre("a=1"));
}

TEST(Container, AThinArchiveSaysWhereItsMembersAre) {
  const Seen seen = visit("!<thin>\n" + ar_header("sub/a.o/", "6"), "thin.a");
  EXPECT_THAT(seen.members, IsEmpty());
  EXPECT_THAT(seen.damage, ElementsAre(HasSubstr("is a thin archive")));
}

}  // namespace
}  // namespace kshim::test
