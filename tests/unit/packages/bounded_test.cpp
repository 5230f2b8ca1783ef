// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/bounded.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "analyzer/owner/finder.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReadBounded, ReadsAWholeFileAndTakesItOffTheBudget) {
  const TemporaryFolder folder;
  LookupBudget budget{100, 10};
  EXPECT_EQ(read_bounded(folder.write("a", "hello"), 5, budget), "hello");
  EXPECT_EQ(budget.bytes, 95U);
  EXPECT_EQ(budget.entries, 9U);
}
TEST(ReadBounded, RefusesALargerFile) {
  const TemporaryFolder folder;
  LookupBudget budget;
  EXPECT_EQ(read_bounded(folder.write("a", "hello"), 4, budget), std::nullopt);
}
TEST(ReadBounded, RefusesWhatIsOverTheBudget) {
  const TemporaryFolder folder;
  LookupBudget budget{4, 10};
  EXPECT_EQ(read_bounded(folder.write("a", "hello"), 100, budget), std::nullopt);
  LookupBudget files{100, 0};
  EXPECT_EQ(read_bounded(folder.path() / "a", 100, files), std::nullopt);
}
TEST(ReadBounded, DoesNotWaitForAPipe) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  LookupBudget budget;
  EXPECT_EQ(read_bounded(pipe, 100, budget), std::nullopt);
}
TEST(ReadBounded, RefusesDevicesAndFolders) {
  const TemporaryFolder folder;
  LookupBudget budget;
  EXPECT_EQ(read_bounded("/dev/zero", 100, budget), std::nullopt);
  EXPECT_EQ(read_bounded(folder.path(), 100'000, budget), std::nullopt);
  EXPECT_EQ(read_bounded(folder.path() / "absent", 100, budget), std::nullopt);
}
TEST(NamesIn, AreSortedAndCounted) {
  const TemporaryFolder folder;
  for (const char* name : {"c", "a", "b"}) folder.write(name, "");
  LookupBudget budget;
  EXPECT_THAT(names_in(folder.path(), budget), ElementsAre("a", "b", "c"));
  LookupBudget small{0, 2};
  EXPECT_THAT(names_in(folder.path(), small), IsEmpty());
}
TEST(EachLine, EndsAndCarriageReturnsAreCutOff) {
  std::vector<std::string> lines;
  each_line("a\r\n\nb", [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  EXPECT_THAT(lines, ElementsAre("a", "", "b"));
}
TEST(NormalPath, IsAbsoluteOrNothing) {
  EXPECT_EQ(normal_path("/usr/lib/../lib/./x"), "/usr/lib/x");
  EXPECT_EQ(normal_path("lib/x"), "");
  EXPECT_EQ(normal_path(""), "");
  EXPECT_EQ(normal_path(std::string_view("/a\0b", 4)), "");
  EXPECT_EQ(normal_path("/" + std::string(5000, 'a')), "");
  EXPECT_EQ(normal_path("/../../etc/x"), "/etc/x");
}
TEST(PathIndex, OwnersComeInOrderAndOnce) {
  PathIndex index;
  index.add("/x", 2);
  index.add("/x", 1);
  index.add("/x", 2);
  index.add("/y", 3);
  for (int question = 0; question < 40; ++question) {  // few and many are answered in other ways
    EXPECT_THAT(index.owners("/x"), ElementsAre(1U, 2U)) << question;
    EXPECT_THAT(index.owners("/y"), ElementsAre(3U)) << question;
    EXPECT_THAT(index.owners("/z"), IsEmpty()) << question;
  }
}

}  // namespace
}  // namespace kshim::test
