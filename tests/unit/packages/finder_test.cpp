// SPDX-License-Identifier: Apache-2.0
// Who is asked first.
#include "analyzer/packages/finder.h"

#include <gmock/gmock.h>

#include "tests/unit/analyzer/report_text.h"

namespace kshim::packages {
namespace {

using ::testing::HasSubstr;

class Find : public ::testing::Test {
 protected:
  std::string who(const std::string& path) {
    Finder finder(folder_.path());
    const auto& found = finder.of(path);
    return found ? found->label() + " (" + found->manager + ")" : "nobody";
  }
  test::TemporaryFolder folder_;
};

TEST_F(Find, WhatCondaInstalledIsCondasThoughItHasARecord) {
  const std::string site = "env/lib/python3.11/site-packages/";
  folder_.write(
      "env/conda-meta/pytorch-2.5.1-0.json",
      R"({"name":"pytorch","version":"2.5.1","files":["lib/python3.11/site-packages/torch/_C.so"]})");
  folder_.write(site + "torch-2.5.1.dist-info/RECORD", "torch/_C.so,,\ntorch/_D.so,,\n");
  EXPECT_EQ(who((folder_.path() / site / "torch/_C.so").string()), "pytorch 2.5.1 (conda)");
  EXPECT_EQ(who((folder_.path() / site / "torch/_D.so").string()), "torch 2.5.1 (pip)");
}
TEST_F(Find, WhatPipInstalledInACondaEnvironmentKnowsTheEnvironment) {
  folder_.write("env/conda-meta/history", "");
  folder_.write("env/lib/python3.11/site-packages/foo-1.dist-info/RECORD", "foo/_C.so,,\n");
  Finder finder(folder_.path());
  const auto& found = finder.of((folder_.path() / "env/lib/python3.11/site-packages/foo/_C.so").string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manager, "pip");
  EXPECT_EQ(found->environment, (folder_.path() / "env").string());
}
TEST_F(Find, AVirtualEnvironmentIsKnownByItsFile) {
  folder_.write("venv/pyvenv.cfg", "home = /usr/bin\n");
  folder_.write("venv/lib/python3.11/site-packages/foo-1.dist-info/RECORD", "foo/_C.so,,\n");
  Finder finder(folder_.path());
  const auto& found = finder.of((folder_.path() / "venv/lib/python3.11/site-packages/foo/_C.so").string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->environment, (folder_.path() / "venv").string());
}
TEST_F(Find, TheDistributionsOwnPythonPackagesAreItsOwn) {
  folder_.write("var/lib/dpkg/info/python3-foo.list", "/usr/lib/python3/dist-packages/foo/_C.so\n");
  folder_.write("var/lib/dpkg/status", "Package: python3-foo\nVersion: 1.0-1\n");
  EXPECT_EQ(who("/usr/lib/python3/dist-packages/foo/_C.so"), "python3-foo 1.0-1 (dpkg)");
}
TEST_F(Find, AHomeFolderIsNotTheSystems) {
  folder_.write("var/lib/dpkg/info/evil.list", "/home/u/libfoo.so\n");
  EXPECT_EQ(who("/home/u/libfoo.so"), "nobody");
}
TEST_F(Find, WhatIsNoPathIsNobodys) {
  EXPECT_EQ(who(""), "nobody");
  EXPECT_EQ(who("libfoo.so"), "nobody");
  EXPECT_EQ(who(std::string("/usr/lib/a\0b", 12)), "nobody");
  EXPECT_EQ(who("[vdso]"), "nobody");
}
TEST_F(Find, ADatabaseThatIsNotReadIsNamed) {
  folder_.write("var/lib/rpm/Packages", "x");
  Finder finder(folder_.path());
  EXPECT_THAT(finder.why_not("/usr/lib64/libfoo.so"), HasSubstr("the database of rpm is a Berkeley DB"));
  EXPECT_EQ(finder.why_not("/home/u/libfoo.so"), "");
  EXPECT_EQ(finder.why_not("libfoo.so"), "");
}

}  // namespace
}  // namespace kshim::packages
