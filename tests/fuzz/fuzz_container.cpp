// SPDX-License-Identifier: Apache-2.0
// Wheels, tarballs and archives in each other, under small limits.
#include "analyzer/input/files/container.h"
#include "analyzer/input/files/file_kind.h"
#include "fuzz_target.h"
#include "tests/support/command_names.h"

using namespace kshim;
using namespace kshim::test;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  constexpr const char* kName = "a.tar.gz";  // every compressed stream is taken for a tarball
  ContainerLimits limits;
  limits.member_bytes = 1U << 20U;
  limits.total_bytes = 4U << 20U;
  limits.members = 200;
  limits.depth = 2;
  std::uint64_t visited = 0;
  std::uint64_t members = 0;
  std::uint64_t done = 0;
  ContainerVisitor visitor;
  visitor.wants = [&](std::string_view name, std::uint64_t claimed) {
    fuzz::require(claimed != 0, "empty members are not asked about");
    return name.size() % 8 != 7;
  };
  visitor.wants_content = [&](std::string_view, Bytes first) {
    fuzz::require(!first.empty() && first.size() <= kFirstBytes, "a member is judged by its first bytes");
    return first.front() != std::byte{'!'};
  };
  visitor.visit = [&](const Member& member) {
    fuzz::require_inside(member.bytes, member.bytes);
    fuzz::require(!member.bytes.empty() && member.bytes.size() <= limits.member_bytes,
                  "the member limit holds");
    visited += member.bytes.size();
    fuzz::require(visited <= limits.total_bytes, "the limit of all members holds");
    fuzz::require(++members <= limits.members, "the limit of their number holds");
  };
  visitor.damaged = [&](std::string_view, std::uint64_t, const std::string& clause) {
    fuzz::require(!clause.empty(), "damage has a reason");
  };
  visitor.progress = [&](std::uint64_t now) {
    fuzz::require(now >= done && now <= input.size(), "progress goes forward, to the end at most");
    done = now;
  };
  each_member(input, kName, limits, visitor);
  return 0;
}
