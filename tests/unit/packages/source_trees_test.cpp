// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "analyzer/owner/finder.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

using ::testing::ElementsAre;

class Sources : public ::testing::Test {
 protected:
  std::string write(const std::string& file, std::string_view text = "x") {
    return folder_.write(file, text).string();
  }
  void project(const std::string& folder, const std::string& name, std::string_view modules) {
    write(folder + name + ".egg-info/PKG-INFO",
          "Metadata-Version: 2.1\nName: " + name + "\nVersion: 0.3\n\nName: body\n");
    write(folder + name + ".egg-info/top_level.txt", modules);
  }
  std::string found(const std::string& path) {
    const auto owner = trees_.owner(path);
    return owner ? owner->label() + " " + owner->source : "nobody";
  }
  std::string in(const std::string& folder) { return "-e " + (folder_.path() / folder).string(); }
  TemporaryFolder folder_;
  LookupBudget budget_;
  SourceTrees trees_{budget_};
};

TEST_F(Sources, AModuleOfThePackage) {
  write("src/vllm/setup.py");
  project("src/vllm/", "vllm", "vllm\n");
  EXPECT_EQ(found(write("src/vllm/vllm/_C.abi3.so")), "vllm 0.3 " + in("src/vllm"));
  EXPECT_EQ(found(write("src/vllm/vllm/deep/er/_D.so")), "vllm 0.3 " + in("src/vllm"));
}
TEST_F(Sources, AModuleBesideThePackage) {
  write("src/fa/setup.py");
  project("src/fa/", "flash_attn", "flash_attn\nflash_attn_2_cuda\n");
  EXPECT_EQ(found(write("src/fa/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so")),
            "flash_attn 0.3 " + in("src/fa"));
}
TEST_F(Sources, TheLayoutWithSrc) {
  write("my/pyproject.toml");
  project("my/src/", "mine", "mine\r\n");
  EXPECT_EQ(found(write("my/src/mine/_C.so")), "mine 0.3 " + in("my"));
}
TEST_F(Sources, WhatItDoesNotListIsSomebodyElses) {
  write("src/x/setup.py");
  project("src/x/", "x", "x\n");
  EXPECT_EQ(found(write("src/x/build/lib/x/_C.so")), "nobody");
  EXPECT_EQ(found(write("src/x/third_party/libfoo.so")), "nobody");
  EXPECT_EQ(found(write("src/x/xy.so")), "nobody");
}
TEST_F(Sources, AFolderThatNothingIsBuiltFromIsNoSource) {
  project("lib/", "x", "x\n");
  EXPECT_EQ(found(write("lib/x/_C.so")), "nobody");
}
TEST_F(Sources, WhatSomebodyElseMayHaveLaidIsNotBuilt) {
  write("src/setup.py");
  project("src/", "open", "x\n");
  const std::string file = write("src/x/_C.so");
  std::filesystem::permissions(folder_.path() / "src", std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(found(file), "nobody");
}
TEST_F(Sources, AProgramIsNotWhatPipBuilds) {
  write("src/setup.py");
  project("src/", "x", "tests\n");
  EXPECT_EQ(found(write("src/tests/train")), "nobody");
  EXPECT_EQ(found(write("src/tests/libops.so")), "x 0.3 " + in("src"));
}
TEST_F(Sources, TheInnermostProject) {
  write("outer/setup.py");
  project("outer/", "outer", "inner\n");
  write("outer/inner/setup.py");
  project("outer/inner/", "inner", "ext\n");
  EXPECT_EQ(found(write("outer/inner/ext/_C.so")), "inner 0.3 " + in("outer/inner"));
  EXPECT_EQ(found(write("outer/inner/other.so")), "outer 0.3 " + in("outer"));
}
TEST_F(Sources, TwoOfOneFolderAreBothNamed) {
  write("src/setup.py");
  project("src/", "a", "ext\n");
  project("src/", "b", "ext\n");
  const auto owner = trees_.owner(write("src/ext/_C.so"));
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->label(), "a 0.3");
  EXPECT_THAT(owner->also, ElementsAre("b 0.3"));
}
TEST_F(Sources, HostileEggInfos) {
  write("src/setup.py");
  write("src/none.egg-info/top_level.txt", "x\n");
  write("src/empty.egg-info/PKG-INFO", "");
  write("src/empty.egg-info/top_level.txt", "x\n");
  write("src/folder.egg-info/PKG-INFO/y", "");
  write("src/folder.egg-info/top_level.txt", "x\n");
  write("src/file.egg-info", "Name: file\n");
  project("src/", "blank", "\n\n../\n/\n.\n..\n");
  EXPECT_EQ(found(write("src/x/_C.so")), "nobody");
  EXPECT_EQ(found(write("src/.hidden.so")), "nobody");
}
TEST_F(Sources, OverTheBudgetNobodyOwnsAnything) {
  write("src/x/setup.py");
  project("src/x/", "x", "x\n");
  budget_.entries = 1;
  EXPECT_EQ(found(write("src/x/x/_C.so")), "nobody");
}
TEST_F(Sources, PathsOfNoDepth) {
  EXPECT_EQ(found("/"), "nobody");
  EXPECT_EQ(found("/x.so"), "nobody");
}

}  // namespace
}  // namespace kshim::test
