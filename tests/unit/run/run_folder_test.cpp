// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/run_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/user_error.h"

namespace kshim::cli {
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
}  // namespace kshim::cli
