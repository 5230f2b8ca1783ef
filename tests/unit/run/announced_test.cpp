// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/run/watch.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kHead = "{\"type\":\"process\",\"seq\":0,\"t\":0,\"schema\":\"kshim-report/1\"}\n";

class Announcements : public ::testing::Test {
 protected:
  Elsewhere find(const fs::path& path, const std::vector<fs::path>& known = {}) {
    return find_announced({{7, path}}, known, [](pid_t pid) { return pid == 7 ? "/bin/train" : ""; });
  }
  std::string why(const fs::path& path) {
    const Elsewhere found = find(path);
    EXPECT_THAT(found.reports, IsEmpty());
    return found.lost.size() == 1 ? found.lost[0].reason : std::string();
  }
  TemporaryFolder folder_;
};

TEST_F(Announcements, AReportSomewhereElseIsRead) {
  const fs::path path = folder_.write("other/h.7.jsonl", kHead);
  const Elsewhere found = find(path);
  EXPECT_THAT(found.reports, ElementsAre(path));
  EXPECT_THAT(found.lost, IsEmpty());
}
TEST_F(Announcements, OneOfTheRunsFolderIsKnown) {
  const fs::path path = folder_.write("h.7.jsonl", kHead);
  const Elsewhere found = find(path.parent_path() / "x" / ".." / "h.7.jsonl", {path});
  EXPECT_THAT(found.reports, IsEmpty());
  EXPECT_THAT(found.lost, IsEmpty());
}
TEST_F(Announcements, OneThatIsAnnouncedTwiceIsOne) {
  const fs::path path = folder_.write("h.7.jsonl", kHead);
  const Elsewhere found = find_announced({{7, path}, {8, path}}, {}, [](pid_t) { return ""; });
  EXPECT_THAT(found.reports, SizeIs(1));
}
TEST_F(Announcements, WhatIsNotThereIsLost) {
  const Elsewhere found = find(folder_.path() / "gone.jsonl");
  ASSERT_THAT(found.lost, SizeIs(1));
  EXPECT_EQ(found.lost[0].pid, 7);
  EXPECT_EQ(found.lost[0].exe, "/bin/train");
  EXPECT_THAT(found.lost[0].reason, HasSubstr("gone.jsonl is not there any more"));
}
TEST_F(Announcements, EachWayToBeLost) {
  EXPECT_EQ(why({}), "it could write no report");
  EXPECT_THAT(why(folder_.write("empty.jsonl", "")), HasSubstr("is empty"));
  EXPECT_THAT(why(folder_.write("text.jsonl", "hello\n")), HasSubstr("is not a report"));
  EXPECT_THAT(why(folder_.path()), HasSubstr("is not a report"));
  EXPECT_THAT(why("/dev/zero"), HasSubstr("is not a report"));
  EXPECT_THAT(why(folder_.write("file", "x") / "below.jsonl"), HasSubstr("below.jsonl"));
}
TEST_F(Announcements, ALinkOrAFifoIsNeitherFollowedNorWaitedFor) {
  const fs::path report = folder_.write("h.7.jsonl", kHead);
  fs::create_symlink(report, folder_.path() / "link.jsonl");
  EXPECT_THAT(why(folder_.path() / "link.jsonl"), HasSubstr("is not a report"));
  const fs::path fifo = folder_.path() / "fifo.jsonl";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(why(fifo), HasSubstr("fifo.jsonl"));
}

}  // namespace
}  // namespace kshim::test
