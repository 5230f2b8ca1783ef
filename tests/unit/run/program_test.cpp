// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/core/user_error.h"
#include "analyzer/run/environment.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

/// PATH is one folder with `tool` (executable), `data` (not) and `folder/`, then another with `data`
/// (executable).
class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kshim-program-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    make("first/tool", 0755);
    make("first/data", 0644);
    make("second/data", 0755);
    make("second/plain", 0644);
    fs::create_directories(root_ / "first" / "folder");
    old_path_ = std::getenv("PATH");
    setenv("PATH", ((root_ / "first").string() + ':' + (root_ / "second").string()).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", old_path_.c_str(), 1);
    fs::remove_all(root_);
  }
  void make(const char* name, mode_t mode) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "content";
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  static int status_of(const std::string& name) {
    try {
      find_program(name);
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.status();
    }
    return 0;
  }

  fs::path root_;
  std::string old_path_;
};

TEST_F(Program, IsSearchedInPathAsExecvpDoes) {
  EXPECT_EQ(find_program("tool"), root_ / "first/tool");
  EXPECT_EQ(find_program("data"), root_ / "second/data");  // the first one is not executable
}

TEST_F(Program, WithASlashIsTakenAsItIs) {
  const std::string path = (root_ / "first/tool").string();
  EXPECT_EQ(find_program(path), path);
}

TEST_F(Program, MissingIs127) {
  EXPECT_EQ(status_of("nowhere"), exit_status::kNotFound);
  EXPECT_EQ(status_of((root_ / "nowhere").string()), exit_status::kNotFound);
  EXPECT_EQ(status_of((root_ / "first/tool/below").string()), exit_status::kNotFound);
  EXPECT_EQ(status_of(""), exit_status::kNotFound);
}

TEST_F(Program, NotExecutableIs126) {
  EXPECT_EQ(status_of("plain"), exit_status::kNotExecutable);
  EXPECT_EQ(status_of((root_ / "second/plain").string()), exit_status::kNotExecutable);
  EXPECT_EQ(status_of((root_ / "first/folder").string()), exit_status::kNotExecutable);
}

TEST_F(Program, PathMayBeUnset) {
  unsetenv("PATH");
  EXPECT_EQ(find_program("sh").filename(), "sh");  // execvp(3): /bin:/usr/bin
}

}  // namespace
}  // namespace kshim::test
