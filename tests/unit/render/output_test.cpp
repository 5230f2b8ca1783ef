// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "analyzer/core/user_error.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

class Outputs : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kshim-output-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    file_ = (folder_ / "out.json").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string get(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_), {}); }
  fs::path folder_;
  std::string file_;
};

TEST_F(Outputs, NothingIsThereBeforeTheEnd) {
  Output output(file_, STDOUT_FILENO, 2);
  EXPECT_EQ(entries(), 0);
  output.write("whole");
  EXPECT_EQ(get(file_), "whole");
  EXPECT_EQ(entries(), 1) << "no temporary file stays behind";
}
TEST_F(Outputs, WhatWasThereStaysUntilTheEndAndIsReplacedNotOverwritten) {
  put(file_, "something longer than what follows");
  fs::permissions(file_, fs::perms(0640));
  std::ifstream reader(file_);
  {
    Output output(file_, STDOUT_FILENO, 2);
    EXPECT_TRUE(output.is_same_file(file_));
    EXPECT_EQ(output.first_bytes(9), "something");
    EXPECT_EQ(get(file_), "something longer than what follows");
    output.write("new");
  }
  EXPECT_EQ(get(file_), "new");
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0640));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "something longer than what follows");
  EXPECT_EQ(entries(), 1);
}
TEST_F(Outputs, OtherNamesOfAFileSeeTheSameContent) {
  put(file_, "old");
  fs::create_hard_link(file_, folder_ / "second");
  Output(file_, STDOUT_FILENO, 2).write("new");
  EXPECT_EQ(get(folder_ / "second"), "new");
}
TEST_F(Outputs, LinksToFilesAreRefused) {
  put(folder_ / "precious", "mine");
  fs::create_symlink("precious", file_);
  EXPECT_THROW(Output(file_, STDOUT_FILENO, 2), UserError);
  fs::remove(file_);
  fs::create_symlink("missing", file_);
  EXPECT_THROW(Output(file_, STDOUT_FILENO, 2), UserError);
  EXPECT_EQ(get(folder_ / "precious"), "mine");
  EXPECT_FALSE(fs::exists(folder_ / "missing"));
}
TEST_F(Outputs, ALinkPlantedMeanwhileIsReplaced) {
  put(folder_ / "precious", "mine");
  Output output(file_, STDOUT_FILENO, 2);
  fs::create_symlink("precious", file_);
  output.write("new");
  EXPECT_EQ(get(folder_ / "precious"), "mine");
  EXPECT_EQ(get(file_), "new");
}
TEST_F(Outputs, DevicesAreWrittenInPlace) {
  fs::create_symlink("/dev/null", file_);
  Output(file_, STDOUT_FILENO, 2).write("gone");
  EXPECT_TRUE(fs::is_symlink(file_));
  EXPECT_TRUE(fs::is_character_file(file_));
}
TEST_F(Outputs, WrongPlacesAreToldBeforeTheWork) {
  EXPECT_THROW(Output((folder_ / "missing/out").string(), STDOUT_FILENO, 2), UserError);
  EXPECT_THROW(Output(folder_.string(), STDOUT_FILENO, 2), UserError);
  EXPECT_THROW(Output((folder_ / "new/").string(), STDOUT_FILENO, 2), UserError);
}

TEST_F(Outputs, TheSummaryOfAStepIsAddedTo) {
  put(file_, "before\n");
  ASSERT_EQ(setenv("GITHUB_STEP_SUMMARY", file_.c_str(), 1), 0);
  for (const char* text : {"one\n", "two\n"}) Output(file_, STDOUT_FILENO, 2).write(text);
  const std::string added = get(file_);
  Output((folder_ / "other").string(), STDOUT_FILENO, 2).write("x");
  unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_EQ(added, "before\none\ntwo\n");
  EXPECT_EQ(get(folder_ / "other"), "x");
  Output(file_, STDOUT_FILENO, 2).write("three\n");
  EXPECT_EQ(get(file_), "three\n");
}

}  // namespace
}  // namespace kshim::cli
