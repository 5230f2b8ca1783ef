// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "analyzer/core/user_error.h"
#include "tests/support/command_names.h"

namespace kshim::test {
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
// A hard link is how somebody makes a file of mine stand in a folder of his: it is never written into.
TEST_F(Outputs, OtherNamesOfAFileKeepTheirContent) {
  put(file_, "old");
  fs::create_hard_link(file_, folder_ / "second");
  Output(file_, STDOUT_FILENO, 2).write("new");
  EXPECT_EQ(get(folder_ / "second"), "old");
  EXPECT_EQ(get(file_), "new");
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
// shows: `-o FILE`: a link to a device, a device
TEST_F(Outputs, NoDeviceIsWrittenTo) {
  fs::create_symlink("/dev/null", file_);
  EXPECT_THROW(Output(file_, STDOUT_FILENO, 2), UserError);
  EXPECT_THROW(Output("/dev/zero", STDOUT_FILENO, 2), UserError);
  EXPECT_THROW(Output("/dev/fd/../null", STDOUT_FILENO, 2), UserError);
  EXPECT_NO_THROW(Output("/dev/null", STDOUT_FILENO, 2).write("gone"));
}
TEST_F(Outputs, LiteralNamesStandForWhatIsOpen) {
  const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "before ", 7), 7);
  Output("/dev/fd/" + std::to_string(fd), STDOUT_FILENO, 2).write("after");
  close(fd);
  EXPECT_EQ(get(file_), "before after") << "neither cut nor overwritten";
  EXPECT_THROW(Output("/dev/fd/" + std::to_string(fd), STDOUT_FILENO, 2), UserError);
}
// shows: `-o FILE`: a FIFO that nobody reads
TEST_F(Outputs, AFifoIsWrittenToOnlyIfSomebodyReads) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THROW(Output(file_, STDOUT_FILENO, 2), UserError) << "and does not wait";
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  Output(file_, STDOUT_FILENO, 2).write("news");
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "news");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(file_));
}
// shows: `-o FILE`: a file of another user, open to all
TEST_F(Outputs, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  put(file_, "theirs");
  ASSERT_EQ(chmod(file_.c_str(), 0666), 0);
  ASSERT_EQ(chown(file_.c_str(), 4711, 4711), 0);
  EXPECT_THROW(Output(file_, STDOUT_FILENO, 2), UserError);
  EXPECT_EQ(get(file_), "theirs");
}
// shows: `-o FILE`: a link of another user on the way
TEST_F(Outputs, AFolderLinkOfAnotherUserIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directory(folder_ / "mine");
  fs::create_directory_symlink("mine", folder_ / "link");
  Output((folder_ / "link/out").string(), STDOUT_FILENO, 2).write("own link");
  EXPECT_EQ(get(folder_ / "mine/out"), "own link");
  ASSERT_EQ(lchown((folder_ / "link").c_str(), 4711, 4711), 0);
  EXPECT_THROW(Output((folder_ / "link/out").string(), STDOUT_FILENO, 2), UserError);
}
TEST_F(Outputs, NobodyElseMayWriteToANewFile) {
  const mode_t before = umask(0);
  Output(file_, STDOUT_FILENO, 2).write("x");
  umask(before);
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0644));
}
// As the owner of the folder can do: the name is now a link to a device, now one to a file of the
// caller's.
// shows: `-o FILE`: a link that flips 10,000 times between a device, a file and a file of the caller's
TEST_F(Outputs, ALinkThatChangesAllTheTimeIsNeverWrittenThrough) {
  constexpr unsigned kFlips = 10'000;
  put(folder_ / "precious", "mine");
  const std::string other = (folder_ / "other").string();
  for (const bool with_file : {false, true}) {
    fs::remove(file_);
    fs::remove(other);
    fs::create_symlink("precious", file_);
    if (with_file)
      put(other, "a file");
    else
      fs::create_symlink("/dev/null", other);
    std::atomic<unsigned> flips{0};
    std::thread flipper([&] {
      constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE
      while (flips < kFlips) {
        syscall(SYS_renameat2, AT_FDCWD, file_.c_str(), AT_FDCWD, other.c_str(), kExchange);
        ++flips;
      }
    });
    do {
      try {
        Output(file_, STDOUT_FILENO, 2).write("overwritten");
      } catch (const UserError&) {
        continue;  // refused: it was a link just then
      }
    } while (flips < kFlips);
    flipper.join();
    EXPECT_EQ(get(folder_ / "precious"), "mine");
  }
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
}  // namespace kshim::test
