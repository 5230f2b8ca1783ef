// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

/// A child that says it is alive, as the shim's constructor does, and ends.
pid_t child_that_calls(const std::string& path) {
  const pid_t pid = fork();
  if (pid == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const int there = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const ssize_t sent = there == 0 ? send(fd, "alive", 5, 0) : -1;
    _exit(sent == 5 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  return pid;
}

TEST(Watch, AProcessThatCalledIsNotBlind) {
  Watch watch;
  const pid_t pid = child_that_calls(watch.socket_path());
  watch.receive();
  EXPECT_TRUE(watch.blind(pid, "/bin/sh", true).empty());
}

TEST(Watch, AProcessThatDidNotCallIsNamedWithAReason) {
  Watch watch;
  const pid_t silent = getpid();
  child_that_calls(watch.socket_path());
  watch.receive();
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const auto other_way = self.parent_path() / ".." / self.parent_path().filename() / self.filename();
  const auto blind = watch.blind(silent, other_way.string(), false);
  ASSERT_EQ(blind.size(), 1U);
  EXPECT_EQ(blind[0].pid, silent);
  EXPECT_EQ(blind[0].exe, self.string());
  EXPECT_NE(blind[0].reason.find("LD_PRELOAD"), std::string::npos);
}

TEST(Watch, TheSocketIsInTheFirstFolderThatTakesOne) {
  namespace fs = std::filesystem;
  const fs::path good = testing::TempDir();
  const fs::path too_long = good / std::string(100, 'x');
  fs::create_directory(too_long);
  const Watch watch({"/nowhere/at/all", "/proc", too_long, good, "/"});
  EXPECT_EQ(fs::path(watch.socket_path()).parent_path().parent_path() / "", good / "");
  EXPECT_TRUE(fs::is_empty(too_long));
  fs::remove(too_long);
  const std::vector<fs::path> folders = socket_folders("some/where");
  EXPECT_EQ(folders.front(), "/tmp");
  EXPECT_EQ(folders.back(), fs::current_path() / "some/where");
}

// Then a child that ended before anybody looked may well have had the shim.
TEST(Watch, WithoutASocketSilenceMeansNothing) {
  Watch watch(std::vector<std::filesystem::path>{"/nowhere/at/all"});
  EXPECT_EQ(watch.socket_path(), "");
  watch.receive();
  EXPECT_FALSE(watch.scan());
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_TRUE(watch.blind(getpid(), self, false).empty());
  EXPECT_EQ(Watch().blind(getpid(), self, false).size(), 1U);
}

TEST(Watch, LeavesNoSocketBehind) {
  std::string path;
  {
    const Watch watch;
    path = watch.socket_path();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST(Watch, RemovesWhatAKilledRunLeft) {
  namespace fs = std::filesystem;
  std::string folder = testing::TempDir() + "kshim-left-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    Watch killed({folder});
    _exit(killed.socket_path().empty() ? 1 : 0);  // no destructor, as SIGKILL would have it
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_FALSE(fs::is_empty(folder));
  {
    const Watch living({folder});
    const Watch next({folder});
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2)
        << "the left one is gone, the living ones are not";
    EXPECT_TRUE(fs::exists(living.socket_path()));
  }
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

TEST(Watch, DescendantsAreFoundThroughTheirParents) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild != 0) {
      [[maybe_unused]] const ssize_t done = write(ends[1], &grandchild, sizeof grandchild);
    }
    close(ends[1]);
    pause();
    _exit(0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  const std::vector<pid_t> found = descendants(getpid());
  EXPECT_EQ(std::count(found.begin(), found.end(), child), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), grandchild), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), getpid()), 0);
  kill(grandchild, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace kshim::test
