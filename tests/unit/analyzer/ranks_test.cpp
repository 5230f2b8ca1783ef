// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "analyzer/verbs/processes.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

TEST(Ranges, AreAsShortAsTheyCanBeSaid) {
  struct Case {
    std::vector<std::uint64_t> numbers;
    const char* text;
  };
  for (const Case& each :
       {Case{{}, ""}, Case{{3}, "3"}, Case{{3, 4}, "3, 4"}, Case{{5, 3, 4, 3}, "3-5"},
        Case{{0, 1, 2, 3, 8, 10, 11, 12}, "0-3, 8, 10-12"},
        Case{{1, 3, 5, 7, 9, 11, 13, 15, 17, 19}, "1, 3, 5, 7, 9, 11, 13, 15 and 2 more"}}) {
    EXPECT_EQ(ranges_text(each.numbers), each.text);
  }
}

TEST(Ranges, NumbersAreGroupedByThousands) {
  EXPECT_EQ(grouped_number(0), "0");
  EXPECT_EQ(grouped_number(999), "999");
  EXPECT_EQ(grouped_number(1000), "1,000");
  EXPECT_EQ(grouped_number(1234567), "1,234,567");
}

class Members : public ::testing::Test {
 protected:
  Members() {
    for (unsigned host = 0; host < 16; ++host) hosts_.push_back(fmt::format("node{:02}", host));
  }
  /// Ranks of a run with `width` of them on each host.
  std::vector<RunMember> ranks(const std::vector<unsigned>& ranks, unsigned width = 8) const {
    std::vector<RunMember> out;
    for (const unsigned rank : ranks) out.push_back({hosts_[rank / width], rank, 4000U + rank % width});
    return out;
  }
  std::vector<RunMember> first(unsigned count, unsigned width = 8) const {
    std::vector<unsigned> all(count);
    for (unsigned i = 0; i < count; ++i) all[i] = i;
    return ranks(all, width);
  }
  std::vector<std::string> hosts_;
};

TEST_F(Members, SomeRanksAreListedByHost) {
  std::vector<unsigned> some;
  for (unsigned rank = 0; rank < 16; ++rank) some.push_back(rank);
  EXPECT_EQ(members_text(ranks(some), first(32)), "ranks 0-7 on node00, 8-15 on node01 (16 of 32)");
}

TEST_F(Members, OneOfManyIsSaidToBeAlone) {
  EXPECT_EQ(members_text(ranks({3}), first(8)), "rank 3 only, on node00 (1 of 8)");
}

TEST_F(Members, AllAreAll) {
  EXPECT_EQ(members_text(first(8), first(8)), "all 8 ranks on node00");
  EXPECT_EQ(members_text(first(16), first(16)), "all 16 ranks on node00 and node01");
  EXPECT_EQ(members_text(first(2), first(2)), "both ranks on node00");
  EXPECT_EQ(members_text(first(96), first(96)), "all 96 ranks on 12 hosts");
}

TEST_F(Members, ManyHostsAreCounted) {
  const std::vector<RunMember> all = first(64, 4);
  const std::vector<RunMember> some(all.begin(), all.end() - 4);
  EXPECT_EQ(members_text(some, all),
            "ranks 0-3 on node00, 4-7 on node01, 8-11 on node02, 12-15 on node03 and 44 on 11 more hosts (60 "
            "of 64)");
}

TEST_F(Members, ARankWithSeveralProcessesCountsOnce) {
  std::vector<RunMember> all = first(4);
  for (const RunMember& child : first(4)) all.push_back({child.host, child.rank, child.pid + 100});
  EXPECT_EQ(members_text({all[1], all[5]}, all), "rank 1 only, on node00 (1 of 4)");
}

TEST_F(Members, WithoutRanksTheyAreProcesses) {
  std::vector<RunMember> all = {{"a", {}, 11}, {"a", {}, 12}, {"b", {}, 11}};
  EXPECT_EQ(members_text(all, all), "all 3 processes on a and b");
  EXPECT_EQ(members_text({all[2]}, all), "process 11 only, on b (1 of 3)");
  EXPECT_EQ(members_text({all[0], all[2]}, all), "processes 11 on a, 11 on b (2 of 3)");
  EXPECT_EQ(members_text({all[0]}, {all[0]}), "process 11 on a");
  // RANK is 0 everywhere where nobody set it.
  for (RunMember& member : all) member.rank = 0;
  EXPECT_EQ(members_text({all[1]}, all), "process 12 only, on a (1 of 3)");
}

}  // namespace
}  // namespace kshim::test
