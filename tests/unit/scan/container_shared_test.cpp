// SPDX-License-Identifier: Apache-2.0
// One container, several threads: nothing twice, nothing left out, and no more memory than was agreed on.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "analyzer/input/files/container.h"
#include "analyzer/input/files/container_buffer.h"
#include "analyzer/input/files/container_walk.h"
#include "container_probe.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kMega = std::uint64_t{1} << 20;

/// What each of `threads` sees, at the same time.
std::vector<Seen> share(const std::string& bytes, const char* name, unsigned threads,
                        const ContainerLimits& limits = {}) {
  std::vector<Seen> seen(threads);
  MemberQueue queue;
  {
    std::vector<std::jthread> running;
    for (Seen& mine : seen)
      running.emplace_back([&] {
        ContainerVisitor visitor = visitor_of(mine);
        visitor.queue = &queue;
        each_member(bytes_of(bytes), name, limits, visitor);
      });
  }
  return seen;
}

std::vector<std::string> all(const std::vector<Seen>& seen, std::vector<std::string> Seen::*which) {
  std::vector<std::string> out;
  for (const Seen& each : seen) out.insert(out.end(), (each.*which).begin(), (each.*which).end());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Shared, EveryMemberOfAZipOnce) {
  std::vector<ZipMember> members;
  std::vector<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    members.push_back(stored(std::to_string(i), "x"));
    expected.push_back(members.back().name + "=x");
  }
  std::sort(expected.begin(), expected.end());
  const std::string zip = build_zip(members);
  for (const unsigned threads : {1U, 2U, 7U}) {
    const auto seen = share(zip, "a.zip", threads);
    EXPECT_EQ(all(seen, &Seen::members), expected);
    EXPECT_THAT(all(seen, &Seen::damage), IsEmpty());
  }
}

TEST(Shared, LargeMembersComeFirst) {
  const std::string large(17 * kMega, 'x');
  const std::string zip = build_zip({stored("b", "22"), deflated("packs well", large), stored("dir/", ""),
                                     deflated("large, too", large), stored("c", "22")});
  const auto seen = share(zip, "a.zip", 1);
  EXPECT_THAT(seen[0].asked, ElementsAre("packs well", "large, too", "b", "c"));
}

TEST(Shared, WhatIsNoZipIsOfOneThread) {
  const Files files = {{"a", "1"}, {"b", "2"}};
  const std::string cut = build_zip({stored("a", "1"), stored("b", "2")});
  for (const auto& [bytes, name] :
       {std::pair{pack(Packing::tar, files), "a.tar"}, std::pair{pack(Packing::tar_gz, files), "a.tar.gz"},
        std::pair{cut.substr(0, cut.find("PK\1\2")), "a.zip"}}) {
    const auto seen = share(bytes, name, 4);
    EXPECT_THAT(all(seen, &Seen::members), ElementsAre("a=1", "b=2")) << name;
    EXPECT_LE(all(seen, &Seen::damage).size(), 2U) << name;
  }
  EXPECT_THAT(all(share("nothing", "a.zip", 4), &Seen::damage), SizeIs(1));
}

TEST(Shared, NestedContainersStayWhole) {
  const std::string inner = pack(Packing::zip, {{"x", "1"}, {"y", "2"}});
  const auto seen = share(pack(Packing::zip, {{"i.zip", inner}, {"j.zip", inner}}), "a.whl", 3);
  EXPECT_THAT(all(seen, &Seen::members), ElementsAre("i.zip!x=1", "i.zip!y=2", "j.zip!x=1", "j.zip!y=2"));
}

TEST(Shared, DamageIsToldOnce) {
  std::string zip = build_zip({stored("a", "1"), stored("b", "2")});
  zip[zip.rfind("PK\1\2")] ^= 1;
  const auto seen = share(zip, "a.zip", 4);
  EXPECT_THAT(all(seen, &Seen::members), ElementsAre("a=1", "b=2"));
  EXPECT_THAT(all(seen, &Seen::damage), ElementsAre(testing::HasSubstr("has no directory that leads on")));
  ContainerLimits limits;
  limits.members = 5;
  const auto many = share(build_zip(std::vector<ZipMember>(9, stored("a", "1"))), "a.zip", 3, limits);
  EXPECT_THAT(all(many, &Seen::members), SizeIs(5));
  EXPECT_THAT(all(many, &Seen::damage), ElementsAre("@0: holds more than 5 members: the rest is not read"));
}

TEST(Shared, MembersInOnePlaceAreReadOnce) {
  ZipMember member = deflated("0", std::string(2'000'000, 'x'));
  std::vector<ZipMember> members = {member};
  member.offset = 0;
  members.insert(members.end(), 200, member);
  const std::string zip = build_zip(members);
  EXPECT_THAT(all(share(zip, "a.zip", 4), &Seen::members), SizeIs(1));
}

TEST(Memory, BeyondTheLimitAFileHoldsWhatIsInflated) {
  std::string noise;
  std::uint32_t state = 1;
  while (noise.size() < 20 * kMega) noise.push_back(static_cast<char>((state = state * 1664525U + 1) >> 24U));
  const std::string zip =
      build_zip({deflated("noise", noise), deflated("small", "y"), deflated("again", noise)});
  const char* folders[] = {"", "/nowhere"};  // and where no file can be made, memory does
  for (const char* folder : folders) {
    if (*folder != '\0') ::setenv("TMPDIR", folder, 1);
    for (const std::uint64_t most : {std::uint64_t{1}, kMega, 64 * kMega}) {
      std::vector<std::string> seen;
      ContainerVisitor visitor;
      visitor.member_memory = most;
      visitor.visit = [&](const Member& member) { seen.emplace_back(text_of(member.bytes)); };
      each_member(bytes_of(zip), "a.zip", {}, visitor);
      EXPECT_TRUE((seen == std::vector<std::string>{noise, "y", noise})) << most;
    }
  }
  ::unsetenv("TMPDIR");
}

TEST(Memory, ABufferMayBeReadBetweenAppends) {
  Buffer buffer(8);
  std::string expected;
  for (int round = 0; round < 3; ++round) {
    for (const char* part : {"one", " and two", " and a third part"}) {
      ASSERT_TRUE(buffer.append(bytes_of(part)));
      expected += part;
      EXPECT_EQ(text_of(buffer.bytes()), expected);
    }
    buffer.clear();
    expected.clear();
    EXPECT_EQ(buffer.size(), 0U);
  }
}

TEST(Memory, WhatWasReadIsToldPieceByPiece) {
  std::string noise;
  std::uint32_t state = 1;
  while (noise.size() < 14 * kMega) noise.push_back(static_cast<char>((state = state * 1664525U + 1) >> 24U));
  for (const Packing packing : {Packing::zip, Packing::zip_stored, Packing::tar_gz}) {
    const std::string bytes = pack(packing, {{"noise", noise}});
    ContainerVisitor visitor;
    std::uint64_t sum = 0;
    std::uint64_t pieces = 0;
    const std::byte* end = nullptr;
    visitor.passed = [&](Bytes passed) {
      EXPECT_TRUE(end == nullptr || end == passed.data()) << "in order, without gaps";
      end = passed.data() + passed.size();
      EXPECT_LE(end, bytes_of(bytes).data() + bytes.size());
      sum += passed.size();
      ++pieces;
    };
    each_member(bytes_of(bytes), "a", {}, visitor);
    EXPECT_GE(pieces, 3U);
    EXPECT_GT(sum, bytes.size() - 5 * kMega);
  }
}

}  // namespace
}  // namespace kshim::test
