// SPDX-License-Identifier: Apache-2.0
// A machine below a folder: links are followed inside of it and never lead out.
#include "analyzer/input/machine/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/command_names.h"

namespace {

using namespace kshim::test;
namespace fs = std::filesystem;

class MachineTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kshim-machine-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    fs::create_directories(root_ / "usr/lib");
    std::ofstream(root_ / "usr/lib/file") << "text";
  }
  void TearDown() override { fs::remove_all(root_); }
  Machine machine() const { return Machine(root_, {{"A", "b"}, {"EMPTY", ""}}); }
  fs::path root_;
};

TEST_F(MachineTest, FilesAndFolders) {
  EXPECT_TRUE(machine().is_file("/usr/lib/file"));
  EXPECT_TRUE(machine().is_folder("/usr/lib"));
  EXPECT_FALSE(machine().is_executable("/usr/lib/file"));
  EXPECT_EQ(machine().read("/usr/lib/file"), "text");
  EXPECT_EQ(machine().names("/usr/lib"), std::vector<std::string>{"file"});
  EXPECT_FALSE(machine().exists("usr/lib"));
  EXPECT_FALSE(machine().exists(""));
  EXPECT_FALSE(machine().live());
}

TEST_F(MachineTest, AbsoluteLinksStayInside) {
  fs::create_symlink("/usr/lib", root_ / "lib");
  EXPECT_EQ(machine().real("/lib/file"), "/usr/lib/file");
  EXPECT_EQ(machine().read("/lib/file"), "text");
}

TEST_F(MachineTest, WhatClimbsOutStaysInside) {
  fs::create_symlink("../../../../../../../usr/lib", root_ / "up");
  EXPECT_EQ(machine().real("/up/file"), "/usr/lib/file");
  EXPECT_EQ(machine().real("/../../usr/./lib/../lib/file"), "/usr/lib/file");
}

TEST_F(MachineTest, Circles) {
  fs::create_symlink("/two", root_ / "one");
  fs::create_symlink("/one", root_ / "two");
  EXPECT_EQ(machine().real("/one"), "");
}

TEST_F(MachineTest, Environment) {
  EXPECT_EQ(machine().env("A"), "b");
  EXPECT_TRUE(machine().has_env("EMPTY"));
  EXPECT_FALSE(machine().has_env("NONE"));
}

TEST(Text, Parts) {
  EXPECT_EQ(split("a::b", ":"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(join_path("/", "a"), "/a");
  EXPECT_EQ(join_path("/a/", "b"), "/a/b");
  EXPECT_EQ(trim(" \ta b\n"), "a b");
}

}  // namespace
