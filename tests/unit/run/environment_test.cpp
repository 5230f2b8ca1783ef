// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

constexpr std::string_view kShim = "/opt/kshim/lib/libkshim.so";

std::vector<std::string> entries(Environment& environment, std::string_view name) {
  std::vector<std::string> found;
  for (const char* entry : environment.pointers()) {
    if (entry != nullptr && std::string_view(entry).substr(0, name.size() + 1) == std::string(name) + '=')
      found.emplace_back(entry);
  }
  return found;
}

struct PreloadCase {
  const char* what;
  const char* existing;
  const char* merged;
};

class MergePreload : public testing::TestWithParam<PreloadCase> {};

TEST_P(MergePreload, KeepsWhatIsThereAndNamesTheShimOnce) {
  EXPECT_EQ(merge_preload(GetParam().existing, kShim), GetParam().merged);
}

INSTANTIATE_TEST_SUITE_P(
    Table, MergePreload,
    testing::Values(
        PreloadCase{"nothing", "", "/opt/kshim/lib/libkshim.so"},
        PreloadCase{"one", "/usr/lib/libjemalloc.so.2",
                    "/opt/kshim/lib/libkshim.so:/usr/lib/libjemalloc.so.2"},
        PreloadCase{"spaces", "a.so b.so", "/opt/kshim/lib/libkshim.so:a.so:b.so"},
        PreloadCase{"colons", ":a.so::b.so:", "/opt/kshim/lib/libkshim.so:a.so:b.so"},
        PreloadCase{"only_separators", " : ", "/opt/kshim/lib/libkshim.so"},
        PreloadCase{"itself", "/opt/kshim/lib/libkshim.so", "/opt/kshim/lib/libkshim.so"},
        PreloadCase{"another_shim", "a.so:/old/libkshim.so:b.so", "/opt/kshim/lib/libkshim.so:a.so:b.so"},
        PreloadCase{"bare_name", "libkshim.so", "/opt/kshim/lib/libkshim.so"},
        PreloadCase{"name_that_ends_alike", "notlibkshim.so", "/opt/kshim/lib/libkshim.so:notlibkshim.so"},
        PreloadCase{"asan_first", "a.so:/usr/lib/libasan.so.8",
                    "/usr/lib/libasan.so.8:/opt/kshim/lib/libkshim.so:a.so"},
        PreloadCase{"clang_runtime_first", "/x/libclang_rt.asan-x86_64.so",
                    "/x/libclang_rt.asan-x86_64.so:/opt/kshim/lib/libkshim.so"}),
    [](const auto& row) { return std::string(row.param.what); });

TEST(Environment, HoldsACopyOfOurs) {
  ASSERT_EQ(setenv("KSHIM_UNIT_TEST", "before", 1), 0);
  Environment environment = Environment::current();
  ASSERT_EQ(setenv("KSHIM_UNIT_TEST", "after", 1), 0);
  EXPECT_EQ(environment.get("KSHIM_UNIT_TEST"), "before");
  environment.set("KSHIM_UNIT_TEST", "child");
  EXPECT_STREQ(std::getenv("KSHIM_UNIT_TEST"), "after");
  unsetenv("KSHIM_UNIT_TEST");
}

TEST(Environment, SetReplacesAndNeverDuplicates) {
  Environment environment;
  environment.set("NAME", "1");
  environment.set("NAME", "2");
  environment.set("NAME_LONGER", "3");
  EXPECT_EQ(entries(environment, "NAME"), std::vector<std::string>{"NAME=2"});
  EXPECT_EQ(environment.get("NAME_LONGER"), "3");
  EXPECT_EQ(environment.get("NAM"), "");
}

TEST(Environment, PrependAndAppendKeepWhatIsThere) {
  Environment environment;
  environment.prepend("LIST", "b", ':');
  environment.prepend("LIST", "a", ':');
  environment.append("LIST", "c", ':');
  EXPECT_EQ(environment.get("LIST"), "a:b:c");
}

TEST(Environment, AnEmptyListGetsNoSeparator) {
  // An empty entry of LD_LIBRARY_PATH means the working directory.
  Environment environment;
  environment.set("LD_LIBRARY_PATH", "");
  environment.prepend("LD_LIBRARY_PATH", "/sim", ':');
  EXPECT_EQ(environment.get("LD_LIBRARY_PATH"), "/sim");
}

TEST(Environment, PointersEndWithNull) {
  Environment environment;
  environment.set("A", "1");
  const std::vector<char*> pointers = environment.pointers();
  ASSERT_EQ(pointers.size(), 2U);
  EXPECT_STREQ(pointers[0], "A=1");
  EXPECT_EQ(pointers[1], nullptr);
}

}  // namespace
}  // namespace kshim::test
