// SPDX-License-Identifier: Apache-2.0
// Which database is asked first.
#include "analyzer/owner/finder.h"

#include <gmock/gmock.h>

#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;

class Find : public ::testing::Test {
 protected:
  std::string who(const std::string& path) {
    Finder finder(folder_.path());
    const auto& found = finder.of(path);
    return found ? found->label() + " (" + found->manager + ")" : "nobody";
  }
  TemporaryFolder folder_;
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
TEST_F(Find, AnotherRootsSystemPackagesAreUnknown) {
  folder_.write("var/lib/dpkg/info/libfoo.list", "/usr/lib/libfoo.so\n");
  folder_.write("var/lib/dpkg/status", "Package: libfoo\nVersion: 1.0-1\n");
  folder_.write("usr/lib/libfoo.so", "x");
  EXPECT_EQ(who("/usr/lib/libfoo.so"), "nobody");
}
TEST_F(Find, WhatIsNoPathIsNobodys) {
  EXPECT_EQ(who(""), "nobody");
  EXPECT_EQ(who("libfoo.so"), "nobody");
  EXPECT_EQ(who(std::string("/usr/lib/a\0b", 12)), "nobody");
  EXPECT_EQ(who("[vdso]"), "nobody");
}
class Editables : public Find {
 protected:
  static constexpr const char* kSite = "venv/lib/python3.11/site-packages/";
  void installed(const std::string& name, const std::string& folder, std::string_view modules,
                 bool editable = true) {
    const std::string info = kSite + name + "-1.0.dist-info/";
    folder_.write(info + "METADATA", "Name: " + name + "\nVersion: 1.0\n\n");
    folder_.write(info + "RECORD", info + "METADATA,,\n");
    folder_.write(info + "direct_url.json", std::string(R"({"dir_info":{"editable":)") +
                                                (editable ? "true" : "false") + R"(},"url":"file://)" +
                                                (folder_.path() / folder).string() + R"("})");
    if (!modules.empty()) folder_.write(info + "top_level.txt", modules);
  }
  std::string owner(const std::string& file, const std::string& known = std::string(kSite) + "torch/_C.so") {
    Finder finder(folder_.path());
    finder.note((folder_.path() / known).string());
    const auto& found = finder.of((folder_.path() / file).string());
    return found ? found->label() + " " + found->source : "nobody";
  }
  std::string in(const std::string& folder) { return "-e " + (folder_.path() / folder).string(); }
};
TEST_F(Editables, AFileOfTheFolderThatTheEnvironmentNames) {
  installed("vllm", "src/vllm", "vllm\n");
  EXPECT_EQ(owner("src/vllm/vllm/_C.abi3.so"), "vllm 1.0 " + in("src/vllm"));
  EXPECT_EQ(owner("src/vllm/src/vllm/_C.abi3.so"), "vllm 1.0 " + in("src/vllm"));
  EXPECT_EQ(owner("src/vllm/tools/tool.so"), "nobody");
  EXPECT_EQ(owner("src/vllm2/vllm/_C.abi3.so"), "nobody");
}
TEST_F(Editables, WithoutAListOfModulesAnExtensionByItsName) {
  installed("mine", "mine", "");
  EXPECT_EQ(owner("mine/build/cp311/_core.cpython-311-x86_64-linux-gnu.so"), "mine 1.0 " + in("mine"));
  EXPECT_EQ(owner("mine/build/train"), "nobody");
}
TEST_F(Editables, TheInnermostFolder) {
  installed("outer", "work", "");
  installed("inner", "work/inner", "");
  EXPECT_EQ(owner("work/inner/_C.abi3.so"), "inner 1.0 " + in("work/inner"));
  EXPECT_EQ(owner("work/_C.abi3.so"), "outer 1.0 " + in("work"));
}
TEST_F(Editables, OnlyOfEnvironmentsThatTheProcessHas) {
  installed("vllm", "src/vllm", "vllm\n");
  EXPECT_EQ(owner("src/vllm/vllm/_C.abi3.so", "other/lib/python3.11/site-packages/torch/_C.so"), "nobody");
}
TEST_F(Editables, AnEnvironmentByItsProgram) {
  installed("vllm", "src/vllm", "vllm\n");
  const auto by_program = [&] {
    Finder finder(folder_.path());
    finder.note_program((folder_.path() / "venv/bin/python").string());
    const auto& found = finder.of((folder_.path() / "src/vllm/vllm/_C.abi3.so").string());
    return found ? found->label() : "nobody";
  };
  EXPECT_EQ(by_program(), "nobody") << "no virtual environment";
  folder_.write("venv/pyvenv.cfg", "home = /usr/bin\n");
  EXPECT_EQ(by_program(), "vllm 1.0");
}
TEST_F(Editables, AnEnvironmentThatIsNamedLater) {
  installed("vllm", "src/vllm", "vllm\n");
  Finder finder(folder_.path());
  const std::string file = (folder_.path() / "src/vllm/vllm/_C.abi3.so").string();
  EXPECT_FALSE(finder.of(file));
  finder.note((folder_.path() / kSite / "torch/_C.so").string());
  EXPECT_TRUE(finder.of(file));
}
TEST_F(Editables, WhatWasInstalledFromAFolderIsNotInIt) {
  installed("vllm", "src/vllm", "vllm\n", false);
  EXPECT_EQ(owner("src/vllm/vllm/_C.abi3.so"), "nobody");
}

}  // namespace
}  // namespace kshim::test
