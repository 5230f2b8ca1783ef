// SPDX-License-Identifier: Apache-2.0
// `where`: which frame of a failure's stacks is shown as the user's own.
#include "analyzer/diagnose/places.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "report_text.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Places : public ::testing::Test {
 protected:
  void python(std::vector<PythonFrame> frames) { failure_.python = std::move(frames); }
  void native(const std::string& object, std::uint64_t offset, const std::string& symbol = "",
              const std::string& build_id = "") {
    failure_.native.push_back({object, build_id, offset, symbol});
  }
  std::vector<Place> places() {
    ObjectFiles files;
    return own_places(failure_, report_, files);
  }
  std::string first() {
    const auto found = places();
    if (found.empty()) return "none";
    const Place& place = found.front();
    return place.file.empty() ? place.function + " in " + place.object
                              : fmt::format("{}:{}", place.file, place.line);
  }
  FailureRecord failure_;
  Report report_;
  TemporaryFolder folder_;
};

TEST_F(Places, TheInnermostOwnPythonFrameIsShown) {
  python({{"/v/lib/python3.11/site-packages/torch/_ops.py", 5, "__call__"},
          {"/tmp/torchinductor_u/ab/cab.py", 7, "call"},
          {"/home/u/model.py", 42, "forward"},
          {"/v/lib/python3.11/site-packages/torch/nn/module.py", 9, "_call_impl"},
          {"/home/u/train.py", 3, "<module>"},
          {"<frozen runpy>", 88, "_run_code"}});
  EXPECT_EQ(first(), "/home/u/model.py:42");
  EXPECT_THAT(places(), SizeIs(2));
}
TEST_F(Places, OfPytestTheTestIsShown) {
  python({{"/v/lib/python3.11/site-packages/torch/_ops.py", 5, "__call__"},
          {"/home/u/tests/test_model.py", 12, "test_forward"},
          {"/v/lib/python3.11/site-packages/_pytest/python.py", 9, "pytest_pyfunc_call"},
          {"/v/lib/python3.11/site-packages/pluggy/_callers.py", 9, "_multicall"},
          {"/v/bin/pytest", 8, "<module>"}});
  EXPECT_EQ(first(), "/home/u/tests/test_model.py:12");
  EXPECT_THAT(places(), SizeIs(1));
}
TEST_F(Places, ACellOfANotebookIsTheUsers) {
  python({{"/v/lib/python3.11/site-packages/torch/_ops.py", 5, "__call__"},
          {"/tmp/ipykernel_12/34.py", 2, "<module>"},
          {"/v/lib/python3.11/site-packages/IPython/core/interactiveshell.py", 9, "run_code"}});
  EXPECT_EQ(first(), "/tmp/ipykernel_12/34.py:2");
}
TEST_F(Places, ACacheThatTheEnvironmentNamesIsGenerated) {
  report_.process.env["TORCHINDUCTOR_CACHE_DIR"] = "/scratch/cache";
  python({{"/scratch/cache/ab/cab.py", 7, "call"}, {"/scratch/cachet/train.py", 3, "<module>"}});
  EXPECT_EQ(first(), "/scratch/cachet/train.py:3");
}
TEST_F(Places, TheMainThreadsFramesStandInForAWorkers) {
  python({{"/v/lib/python3.11/site-packages/torch/autograd/function.py", 5, "apply"}});
  failure_.python_main = {{"/home/u/train.py", 3, "<module>"}};
  EXPECT_EQ(first(), "/home/u/train.py:3");
}
TEST_F(Places, ACommandOfPythonIsTheUsersWhereItBeganEverything) {
  python({{"<string>", 2, "__init__"}, {"<string>", 1, "<module>"}});
  EXPECT_EQ(first(), "<string>:1");
  python({{"<string>", 1, "<module>"}, {"/v/lib/python3.11/site-packages/x.py", 1, "f"}});
  EXPECT_EQ(first(), "none");
}
TEST_F(Places, WithoutAPythonFrameTheNativeOneIsShown) {
  python({{"/v/lib/python3.11/site-packages/x.py", 1, "f"}});
  native("/usr/lib/x86_64-linux-gnu/libcudart.so.13", 8, "cudaLaunchKernel");
  native("/v/lib/python3.11/site-packages/x/_C.so", 8, "_Z1fv");
  native("/home/u/build/libsolver.so", 8, "_Z5solvePf");
  native("/lib/x86_64-linux-gnu/libc.so.6", 8, "__libc_start_main");
  EXPECT_EQ(first(), "solve(float*) in /home/u/build/libsolver.so");
}
TEST_F(Places, StubsAndStaticRuntimesInTheUsersFileAreNotTheUsers) {
  report_.process.exe = "/home/u/a.out";
  failure_.kernel = "_Z5saxpyifPKfPf";
  native("/home/u/a.out", 8, "cudart::cudaApiLaunchKernel");
  native("/home/u/a.out", 8, "_Z31__device_stub__Z5saxpyifPKfPfifPKfPf");
  native("/home/u/a.out", 8, "_Z5saxpyifPKfPf");
  native("/home/u/a.out", 8, "_Z3runPf");
  native("/home/u/a.out", 8, "_start");
  EXPECT_EQ(first(), "run(float*) in /home/u/a.out");
}
TEST_F(Places, NothingOfTheUsersIsNothing) {
  native("/usr/lib/libfoo.so", 8, "f");
  native("", 8, "f");
  EXPECT_THAT(places(), IsEmpty());
}

#ifdef KSHIM_TEST_LINES
/// A file with debug information, whose function `kshim_lines_outer` has another one inlined.
TEST_F(Places, DebugInformationTellsTheLine) {
  const std::string path = KSHIM_TEST_LINES;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto elf = image::ElfReader::open(bytes_of(bytes));
  const auto table = elf->section(".symtab");
  if (!table) GTEST_SKIP() << "this build strips its programs";
  for (std::uint64_t i = 0; i < elf->symbol_count(*table); ++i) {
    const auto symbol = elf->symbol(*table, i);
    if (symbol->name == "kshim_lines_outer")
      native(path, symbol->value + symbol->size - 1, "", build_id_of(path));
  }
  const auto found = places();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].file, EndsWith("lines_fixture.cpp"));
  EXPECT_GT(found[0].line, 10U);
  EXPECT_EQ(found[0].function, "kshim_lines_outer");
  EXPECT_FALSE(found[0].python);
  // The same path with another file in it says nothing.
  failure_.native.front().build_id = "00ff";
  EXPECT_THAT(places(), SizeIs(1));
  EXPECT_EQ(places()[0].file, "");
}
#endif

}  // namespace
}  // namespace kshim::test
