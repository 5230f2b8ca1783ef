// SPDX-License-Identifier: Apache-2.0
// The records are made by hand after the documented format: no conda on the machines that test.
#include <gmock/gmock.h>

#include "analyzer/owner/databases.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

constexpr std::string_view kPytorch =
    R"({"build": "py3.11_cuda12.4_cudnn9.1.0_0", "build_number": 0,
        "channel": "https://conda.anaconda.org/pytorch/linux-64", "files": ["lib/libtorch_cuda.so",
        "lib/python3.11/site-packages/torch/_C.so"], "name": "pytorch", "version": "2.5.1", "link": {"type": 1}})";

class Conda : public ::testing::Test {
 protected:
  std::string write(const std::string& file, std::string_view text = "x") {
    return folder_.write("envs/ml/" + file, text).string();
  }
  void record(const std::string& name, std::string_view text) { write("conda-meta/" + name, text); }
  std::string label(const std::string& path) {
    const auto found = conda_.owner(path);
    return found ? found->label() : "nobody";
  }
  TemporaryFolder folder_;
  LookupBudget budget_;
  CondaEnvironments conda_{budget_};
};

TEST_F(Conda, FileBelongsToThePackageWhoseRecordListsIt) {
  record("pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json", kPytorch);
  const auto found = conda_.owner(write("lib/libtorch_cuda.so"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->label(), "pytorch 2.5.1");
  EXPECT_EQ(found->build, "py3.11_cuda12.4_cudnn9.1.0_0");
  EXPECT_EQ(found->channel, "pytorch");
  EXPECT_EQ(found->manager, "conda");
  EXPECT_EQ(found->environment, (folder_.path() / "envs/ml").string());
  EXPECT_EQ(label(write("lib/libother.so")), "nobody");
}
TEST_F(Conda, AChannelIsAsTheCommandTakesItAndKeepsNoSecret) {
  const std::pair<const char*, const char*> rows[] = {
      {"conda-forge", "conda-forge"},
      {"https://conda.anaconda.org/conda-forge/linux-64", "conda-forge"},
      {"https://conda.anaconda.org/conda-forge/label/rc/noarch/", "conda-forge/label/rc"},
      {"https://conda.anaconda.org/t/se-cret/conda-forge/noarch/", "conda-forge"},
      {"https://conda.anaconda.org/t/se-cret", ""},
      {"https://repo.anaconda.com/pkgs/main/linux-64", "defaults"},
      {"pkgs/main", "defaults"},
      {"https://me:se-cret@conda.example.org/team/linux-64", "https://conda.example.org/team"},
      {"https://me@se-cret@conda.example.org/t/se-cret/team", "https://conda.example.org/team"},
      {"https://", ""},
      {"/", ""},
      {"", ""},
  };
  for (std::size_t i = 0; i < std::size(rows); ++i)
    record(fmt::format("p{}.json", i),
           fmt::format(R"({{"name":"p","version":"1","channel":"{}","files":["{}.so"]}})", rows[i].first, i));
  for (std::size_t i = 0; i < std::size(rows); ++i)
    EXPECT_EQ(conda_.owner(write(fmt::format("{}.so", i)))->channel, rows[i].second) << rows[i].first;
}
TEST_F(Conda, TheNextFolderWithRecordsIsTheEnvironment) {
  folder_.write("conda-meta/base.json", R"({"name":"base","version":"1","files":["envs/ml/lib/x.so"]})");
  record("pytorch.json", kPytorch);
  EXPECT_EQ(conda_.prefix(write("lib/x.so")), (folder_.path() / "envs/ml").string());
  EXPECT_EQ(label(write("lib/x.so")), "nobody");
  EXPECT_EQ(conda_.prefix(folder_.write("lib/y.so", "").string()), folder_.path().string());
}
TEST_F(Conda, OutsideOfEveryEnvironmentIsNone) {
  EXPECT_EQ(conda_.prefix(write("lib/x.so")), "");
  EXPECT_EQ(conda_.prefix("/"), "");
  EXPECT_EQ(label("/nowhere/lib/x.so"), "nobody");
}
TEST_F(Conda, AnEscapedPathIsTheSamePath) {
  record("a.json", R"({"name":"a","version":"1","files":["lib\/\u00e9.so"]})");
  EXPECT_EQ(label(write("lib/\u00e9.so")), "a 1");
}
TEST_F(Conda, TornJsonOwnsNothing) {
  record("a.json", kPytorch.substr(0, 150));
  record("b.json", R"({"name":"b","version":"1","files":["lib/libtorch_cuda.so"]})");
  EXPECT_EQ(label(write("lib/libtorch_cuda.so")), "b 1");
}
TEST_F(Conda, FieldsOfOtherTypesAreAbsent) {
  record("a.json", R"({"name":7,"version":"1","files":["a.so"]})");
  record("b.json", R"({"name":"b","version":{},"channel":[],"files":["b.so",1,null,["b2.so"]]})");
  record("c.json", R"({"name":"c","files":"c.so"})");
  record("d.json", R"(["name"])");
  EXPECT_EQ(label(write("a.so")), "nobody");
  EXPECT_EQ(label(write("b.so")), "b");
  EXPECT_EQ(label(write("c.so")), "nobody");
}
TEST_F(Conda, DeepNestingIsRefused) {
  record("a.json", std::string(100'000, '['));
  EXPECT_EQ(label(write("a.so")), "nobody");
}
TEST_F(Conda, PathsThatLeadOutOwnNothingThere) {
  record("a.json",
         R"({"name":"a","version":"1","files":["../../../../../../usr/lib/libc.so.6","/usr/lib/x.so"]})");
  EXPECT_EQ(label("/usr/lib/libc.so.6"), "nobody");
}
TEST_F(Conda, ReturnsNoOwnerWhenBudgetIsExceeded) {
  record("pytorch.json", kPytorch);
  const std::string path = write("lib/libtorch_cuda.so");
  budget_.bytes = 10;
  EXPECT_EQ(label(path), "nobody");
}

}  // namespace
}  // namespace kshim::test
