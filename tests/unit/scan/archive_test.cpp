// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/archive.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "container_fixture.h"

namespace kshim::image {
namespace {

using test::ar_header;
using test::ar_member;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kMagic(kArchiveMagic);

struct Read {
  std::vector<std::string> members;  // "name=contents"
  std::vector<std::string> errors;   // "name@offset: code"
};

Read read(const std::string& archive) {
  Read out;
  auto opened = ArchiveReader::open(bytes_of(archive));
  if (!opened) return {{}, {"open"}};
  ArchiveReader reader = *opened;
  for (;;) {
    const auto member = reader.next();
    if (member) {
      out.members.push_back(std::string(member->name) + "=" + std::string(text_of(member->bytes)));
    } else if (member.error().code == Errc::not_found) {
      return out;
    } else {
      out.errors.push_back(std::string(reader.name()) + "@" + std::to_string(member.error().offset) + ": " +
                           describe(member.error().code));
    }
    EXPECT_LT(out.members.size() + out.errors.size(), 1000U) << "the walk ends";
    if (out.members.size() + out.errors.size() >= 1000) return out;
  }
}

const std::string kTruncated = ": ends before the structure it announces";
const std::string kBadHeader = ": has a header that contradicts itself";

TEST(Archive, GnuNamesAndTables) {
  const Read seen = read(kMagic + ar_member("/", std::string(8, '\0')) + ar_member("/SYM64/", "12345678") +
                         ar_member("//", "a_very_long_name_of_an_object.o/\nanother_long_name.o/\n") +
                         ar_member("a.o/", "odd") + ar_member("/0", "first") + ar_member("/33", "second") +
                         ar_member("name with space/", "x"));
  EXPECT_THAT(seen.errors, IsEmpty());
  EXPECT_THAT(seen.members, ElementsAre("a.o=odd", "a_very_long_name_of_an_object.o=first",
                                        "another_long_name.o=second", "name with space=x"));
}

TEST(Archive, BsdNames) {
  const Read seen = read(kMagic + ar_member("__.SYMDEF", "tabl") +
                         ar_member("#1/20", std::string("__.SYMDEF SORTED\0\0\0\0rest", 24)) +
                         ar_member("#1/8", std::string("long.o\0\0", 8) + "contents") +
                         ar_member("short.o", "s") + ar_member("#1/5", "empty"));
  EXPECT_THAT(seen.errors, IsEmpty());
  EXPECT_THAT(seen.members, ElementsAre("long.o=contents", "short.o=s", "empty="));
}

TEST(Archive, WindowsNames) {
  const Read seen = read(kMagic + ar_member("/", "1234") + ar_member("/", "12345") +
                         ar_member("//", std::string("dir\\first.obj\0dir\\second.obj\0", 29)) +
                         ar_member("/0", "one") + ar_member("/14", "two"));
  EXPECT_THAT(seen.errors, IsEmpty());
  EXPECT_THAT(seen.members, ElementsAre("dir\\first.obj=one", "dir\\second.obj=two"));
}

TEST(Archive, AThinOneIsRefused) {
  EXPECT_EQ(ArchiveReader::open(bytes_of(std::string(kThinArchiveMagic))).error().code, Errc::bad_magic);
}

TEST(Archive, Nothing) {
  EXPECT_THAT(read(kMagic).members, IsEmpty());
  EXPECT_THAT(read(kMagic).errors, IsEmpty());
  EXPECT_EQ(ArchiveReader::open(bytes_of("!<arch>\r")).error().code, Errc::bad_magic);
  EXPECT_EQ(ArchiveReader::open(bytes_of("!<arch>")).error().code, Errc::truncated);
  EXPECT_EQ(ArchiveReader::open({}).error().code, Errc::truncated);
}

TEST(Archive, PaddingBehindTheLastMemberMayLack) {
  EXPECT_THAT(read(kMagic + ar_header("a.o/", "3") + "odd").members, ElementsAre("a.o=odd"));
  EXPECT_THAT(read(kMagic + ar_header("a.o/", "3") + "odd\n").errors, IsEmpty());
}

TEST(Archive, SizesThatLie) {
  const std::string first = ar_member("a.o/", "ok");
  const std::string at = "@" + std::to_string(kMagic.size() + first.size());
  for (const char* size : {"9999999999", "4294967295", "4294967296", "4294967301", "6"}) {
    const Read seen = read(kMagic + first + ar_header("b.o/", size) + "12345");
    EXPECT_THAT(seen.members, ElementsAre("a.o=ok"));
    EXPECT_THAT(seen.errors, ElementsAre("b.o" + at + kTruncated)) << size;
  }
  const std::string field = "@" + std::to_string(kMagic.size() + first.size() + 48);
  for (const char* size : {"-1", "", "0x10", "1 2", "+5", "5."}) {
    const Read seen = read(kMagic + first + ar_header("b.o/", size) + "12345");
    EXPECT_THAT(seen.members, ElementsAre("a.o=ok"));
    EXPECT_THAT(seen.errors, ElementsAre(field + kBadHeader)) << size;
  }
  const Read table = read(kMagic + ar_header("//", "9999999999") + "a/\n");
  EXPECT_THAT(table.errors, ElementsAre("//@8" + kTruncated));
}

TEST(Archive, ABadNameHidesNothing) {
  const std::string table = ar_member("//", "long_name/\n");
  for (const char* name :
       {"/11", "/4294967296", "/99999999999999", "/x", "/0:5", "#1/x", "#1/9999999999999", "#1/6"}) {
    const Read seen = read(kMagic + table + ar_member(name, "five!") + ar_member("b.o/", "ok"));
    EXPECT_THAT(seen.members, ElementsAre("b.o=ok")) << name;
    EXPECT_EQ(seen.errors.size(), 1U) << name;
  }
}

TEST(Archive, NamesPassAsTheyAre) {
  const Read seen = read(kMagic + ar_member("../../etc/x/", "1") + ar_member("\x1b[31mred/", "2") +
                         ar_member("\xff\xfe/", "3") + ar_member("", "4"));
  EXPECT_THAT(seen.members, ElementsAre("../../etc/x=1", "\x1b[31mred=2", "\xff\xfe=3", "=4"));
}

TEST(Archive, CutOffAnywhere) {
  std::string whole = kMagic;
  std::vector<std::size_t> unseen = {whole.size()};  // cuts between members, which nothing tells
  for (const std::string& member :
       {ar_member("/", "1234"), ar_member("//", "a_long_long_long_name.o/\n"), ar_member("/0", "first"),
        ar_member("#1/4", "abcdrest"), ar_member("c.o/", "third")}) {
    whole += member;
    if (member.ends_with("o/\n\n") || member.ends_with("first\n") || member.ends_with("third\n"))
      unseen.push_back(whole.size() - 1);
    unseen.push_back(whole.size());
  }
  const Read all = read(whole);
  ASSERT_EQ(all.members.size(), 3U);
  for (std::size_t size = kMagic.size(); size < whole.size(); ++size) {
    const Read part = read(whole.substr(0, size));
    ASSERT_LE(part.members.size(), all.members.size());
    for (std::size_t at = 0; at < part.members.size(); ++at)
      EXPECT_EQ(part.members[at], all.members[at]) << size;
    const bool told = std::find(unseen.begin(), unseen.end(), size) == unseen.end();
    EXPECT_EQ(part.errors.size(), told ? 1U : 0U) << size;
  }
}

}  // namespace
}  // namespace kshim::image
