// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/core/user_error.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kshim-folder-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    before_ = fs::current_path();
    fs::current_path(root_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(root_);
  }
  static void report(const fs::path& path, const std::string& run) {
    std::ofstream(path) << R"({"type":"process","seq":0,"run":")" << run << "\"}\n{\"type\":\"end\"}\n";
  }
  fs::path root_;
  fs::path before_;
};

TEST_F(RunFolderTest, LeavesNothingBehindWhereNothingWasReported) {
  { const RunFolder folder(""); }
  { const RunFolder folder("a/b/c"); }
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(RunFolderTest, KeepsReportsAndFoldersThatWereThere) {
  fs::create_directories("mine");
  {
    const RunFolder folder("mine/new");
    report(folder.path() / "host.1.jsonl", folder.run_id());
  }
  { const RunFolder folder("mine"); }
  EXPECT_TRUE(fs::exists("mine/new/host.1.jsonl"));
}

TEST_F(RunFolderTest, ThePatternIsAbsoluteAndItsPercentSignsAreThemselves) {
  const RunFolder folder("100%p");
  EXPECT_EQ(folder.pattern(), (fs::current_path() / "100%%p/%h.%p.jsonl").string());
}

TEST_F(RunFolderTest, ListsTheReportsOfThisRunOnly) {
  const RunFolder folder("reports");
  report("reports/b.jsonl", folder.run_id());
  report("reports/a.jsonl", folder.run_id());
  report("reports/other.jsonl", folder.run_id() + "1");
  report("reports/notes.txt", folder.run_id());
  std::ofstream("reports/empty.jsonl").flush();
  const std::vector<fs::path> expected = {"reports/a.jsonl", "reports/b.jsonl"};
  EXPECT_EQ(folder.reports(), expected);
}

// CMD may leave anything there. Opened as a file is, the FIFO would wait, and the device have no end.
// shows: `kshim run`: FIFOs, devices and links among the reports
TEST_F(RunFolderTest, WhatIsNoFileIsNoReport) {
  const RunFolder folder("reports");
  ASSERT_EQ(mkfifo("reports/fifo.jsonl", 0600), 0);
  fs::create_symlink("/dev/zero", "reports/zero.jsonl");
  fs::create_directory("reports/folder.jsonl");
  report("elsewhere", folder.run_id());
  fs::create_symlink("../elsewhere", "reports/link.jsonl");
  std::ofstream("reports/long.jsonl") << std::string(1 << 20, 'x') << '"' << folder.run_id() << '"';
  EXPECT_TRUE(folder.reports().empty());
  report("reports/a.jsonl", folder.run_id());
  EXPECT_EQ(folder.reports(), std::vector<fs::path>{"reports/a.jsonl"});
}

// tests/hostile/files.py has the same of the shim.
// shows: `kshim run`: what another user laid where the reports go
TEST_F(RunFolderTest, WhatSomebodyElseLaidIsNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make what belongs to somebody else";
  constexpr uid_t kNobody = 65534;
  fs::create_directory("another's");
  if (chown("another's", kNobody, kNobody) != 0)
    GTEST_SKIP() << "root of a namespace that has no other users";
  setenv("TMPDIR", (root_ / "tmp").c_str(), 1);
  fs::create_directory("tmp");
  fs::create_directory("target");
  fs::create_directory("open");
  const auto place = [] {
    const RunFolder folder("");
    EXPECT_EQ(folder.remark().empty(), folder.path().is_relative());
    return folder.path().parent_path().filename().string();
  };
  const std::string own = "kshim-report-0";
  // A link, then a folder.
  fs::create_symlink("../target", "open/kshim-report");
  ASSERT_EQ(lchown("open/kshim-report", kNobody, kNobody), 0);
  fs::current_path("open");
  EXPECT_EQ(place(), own);
  EXPECT_TRUE(fs::is_empty("../target"));
  for (const char* wanted : {"kshim-report", "kshim-report/mine"})
    EXPECT_THROW(const RunFolder folder(wanted), UserError) << wanted;
  ASSERT_EQ(lchown("kshim-report", 0, 0), 0);
  { const RunFolder folder("kshim-report/mine"); }
  fs::remove("kshim-report");
  fs::create_directory("kshim-report");
  EXPECT_EQ(place(), "kshim-report");
  ASSERT_EQ(chown("kshim-report", kNobody, kNobody), 0);
  EXPECT_EQ(place(), own);
  ASSERT_EQ(chown("kshim-report", 0, 0), 0);
  ASSERT_EQ(chmod("kshim-report", 0777), 0);
  EXPECT_EQ(place(), own);
  ASSERT_EQ(chmod("kshim-report", 0775), 0);
  EXPECT_EQ(place(), "kshim-report");
  // /tmp, and a folder that all may write to.
  ASSERT_EQ(chmod(".", 01777), 0);
  EXPECT_EQ(place(), own);
  ASSERT_EQ(chmod(".", 0777), 0);
  EXPECT_EQ(place(), own);
  // In a container one is root, and the working directory belongs to somebody outside.
  ASSERT_EQ(chmod(".", 0755), 0);
  ASSERT_EQ(chown(".", kNobody, kNobody), 0);
  EXPECT_EQ(place(), own);
  // Another user was in the folder for temporary files before.
  fs::remove_all("../tmp/kshim-report-0");
  fs::create_directory("../tmp/kshim-report-0");
  ASSERT_EQ(chown("../tmp/kshim-report-0", kNobody, kNobody), 0);
  EXPECT_TRUE(place().starts_with(own + "."));
  unsetenv("TMPDIR");
}

TEST_F(RunFolderTest, WhatAKilledRunLeftIsRemovedByTheNext) {
  fs::create_directories("kshim-report/20260101-000000-999999999");  // no process has that number
  const std::string living = "kshim-report/20260101-000000-" + std::to_string(getpid());
  fs::create_directories(living);
  fs::create_directories("kshim-report/20260102-000000-999999999");
  report("kshim-report/20260102-000000-999999999/host.1.jsonl", "x");
  const RunFolder folder("");
  EXPECT_FALSE(fs::exists("kshim-report/20260101-000000-999999999"));
  EXPECT_TRUE(fs::exists(living));
  EXPECT_TRUE(fs::exists("kshim-report/20260102-000000-999999999/host.1.jsonl"));
}

TEST_F(RunFolderTest, NobodyElseMayWriteIntoWhatIsMadeWhateverTheUmask) {
  const mode_t before = umask(0);
  const RunFolder folder("");
  umask(before);
  for (const fs::path& made : {fs::path("kshim-report"), folder.path()})
    EXPECT_EQ(fs::status(made).permissions(), fs::perms(0755)) << made;
}

TEST_F(RunFolderTest, RefusesWhatCannotBeAFolder) {
  std::ofstream("file") << "text";
  for (const char* wanted : {"file", "file/below"}) {
    try {
      const RunFolder folder(wanted);
      ADD_FAILURE() << wanted;
    } catch (const UserError& error) {
      EXPECT_EQ(error.status(), exit_status::kRunFailed);
      EXPECT_EQ(std::string(error.what()),
                std::string("--report ") + wanted + ": cannot write there: Not a directory");
    }
  }
}

TEST_F(RunFolderTest, TwoRunsHaveTheirOwnFolders) {
  const RunFolder folder("");
  EXPECT_EQ(folder.path().parent_path(), "kshim-report");
  EXPECT_EQ(folder.path().filename(), folder.run_id());
}

}  // namespace
}  // namespace kshim::test
