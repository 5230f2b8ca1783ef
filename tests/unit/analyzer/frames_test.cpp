// SPDX-License-Identifier: Apache-2.0
// Whose code a frame is: every row of the tables has an example here that it decides, and what looks like it
// decides otherwise.
#include "analyzer/data/frames.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct PythonExample {
  const char* file;
  const char* function;
  FrameOwner owner;
};
constexpr PythonExample kPythonExamples[] = {
    {"/home/u/train.py", "main", FrameOwner::user},
    {"train.py", "<module>", FrameOwner::user},
    {"/home/u/src/editable_package/model.py", "forward", FrameOwner::user},
    {"/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", "_call_impl", FrameOwner::library},
    {"/home/u/.local/lib/python3.11/site-packages/torch/_ops.py", "__call__", FrameOwner::library},
    {"/venv/lib/python3.11/site-packages/ipykernel_launcher.py", "<module>", FrameOwner::library},
    {"/venv/lib/python3.11/site-packages/_pytest/runner.py", "pytest_runtest_call", FrameOwner::library},
    {"/venv/lib/python3.11/site-packages/torch/distributed/run.py", "main", FrameOwner::library},
    {"/usr/lib/python3/dist-packages/foo/bar.py", "f", FrameOwner::library},
    {"/home/u/.pex/installed_wheels/abc/torch-2.9-cp311.whl/torch/_ops.py", "f", FrameOwner::library},
    {"/venv/lib/foo-1.0-py3.11.egg/foo/x.py", "f", FrameOwner::library},
    {"/tmp/torchinductor_u/ab/cabc123.py", "call", FrameOwner::generated},
    {"/home/u/.triton/cache/abc/launcher.py", "f", FrameOwner::generated},
    {"/home/u/.cupy/kernel_cache/x.py", "f", FrameOwner::generated},
    {"/tmp/ipykernel_4711/123456.py", "<module>", FrameOwner::user},
    {"<ipython-input-3-abcdef>", "<module>", FrameOwner::user},
    {"/tmp/ipython-input-12-345.py", "<module>", FrameOwner::user},
    {"/tmp/marimo_12/__marimo__cell_Hbol_.py", "<module>", FrameOwner::user},
    {"<timed exec>", "<module>", FrameOwner::user},
    {"<command-1234>", "<module>", FrameOwner::user},
    {"<stdin>", "<module>", FrameOwner::user},
    {"<doctest foo.bar[0]>", "<module>", FrameOwner::user},
    {"/usr/lib/python3.11/runpy.py", "_run_code", FrameOwner::library},
    {"/usr/lib64/python3.9/unittest/case.py", "run", FrameOwner::library},
    {"<frozen runpy>", "_run_module_as_main", FrameOwner::generated},
    {"<frozen importlib._bootstrap>", "_call_with_frames_removed", FrameOwner::generated},
    {"<string>", "__init__", FrameOwner::generated},
    {"<eval_with_key>.7", "forward", FrameOwner::generated},
    {"/home/u/.vscode/extensions/ms-python.debugpy-2025/bundled/libs/debugpy/server/cli.py", "main",
     FrameOwner::launcher},
    {"/opt/x/_vendored/pydevd/pydevd.py", "run", FrameOwner::launcher},
    {"/opt/pycharm/plugins/python/helpers/pydev/x.py", "run", FrameOwner::launcher},
    {"/opt/pycharm/plugins/python/helpers/pycharm/_jb_pytest_runner.py", "<module>", FrameOwner::launcher},
    {"/venv/bin/torchrun", "<module>", FrameOwner::launcher},
    {"/venv/bin/pytest", "<module>", FrameOwner::launcher},
    {"/home/u/bin/train.py", "<module>", FrameOwner::user},
    {"/home/u/bin/train", "main", FrameOwner::user},
    {"bin", "<module>", FrameOwner::user},
    {"C:\\Users\\bob\\proj\\train.py", "<module>", FrameOwner::user},
    {"D:\\proj\\lib\\train.py", "<module>", FrameOwner::user},
    {"D:\\venvs\\t\\Lib\\site-packages\\torch\\nn\\modules\\module.py", "_call_impl", FrameOwner::library},
    {"C:\\Python310\\Lib\\json\\decoder.py", "decode", FrameOwner::library},
    {"C:\\Users\\bob\\AppData\\Local\\Programs\\Python\\Python311\\Lib\\threading.py", "run",
     FrameOwner::library},
    {"C:\\Users\\bob\\AppData\\Local\\Temp\\torchinductor_bob\\ab\\cab.py", "call", FrameOwner::generated},
};

TEST(PythonFrames, AreWhoseTheTableSays) {
  for (const PythonExample& example : kPythonExamples)
    EXPECT_EQ(owner_of_python(example.file, example.function), example.owner) << example.file;
}

/// Whether a row alone would take the example.
bool takes(const PythonFrameRow& row, const PythonExample& example) {
  const std::string file = example.file;
  switch (row.match) {
    case FrameMatch::begins:
      return file.starts_with(row.text);
    case FrameMatch::holds:
      return file.find(row.text) != std::string::npos;
    default:
      return example.owner == FrameOwner::launcher &&
             file.find("/" + std::string(row.text) + "/") != std::string::npos;
  }
}

TEST(PythonFrames, EveryRowDecidesAnExample) {
  for (const PythonFrameRow& row : python_frames()) {
    const bool decides =
        std::any_of(std::begin(kPythonExamples), std::end(kPythonExamples), [&](const auto& example) {
          const auto first = std::find_if(python_frames().begin(), python_frames().end(),
                                          [&](const PythonFrameRow& each) { return takes(each, example); });
          return first != python_frames().end() && first->match == row.match && first->text == row.text &&
                 first->owner == row.owner && example.owner == row.owner;
        });
    EXPECT_TRUE(decides) << row.text;
  }
}

TEST(NativeFrames, EveryRowTakesWhatItIsFor) {
  std::set<std::string> seen;
  for (const NativeFrameRow& row : native_frames()) {
    const std::string text(row.text);
    switch (row.match) {
      case FrameMatch::file_begins:
        EXPECT_EQ(owner_of_object("/home/u/" + text + "1"), row.owner) << text;
        EXPECT_EQ(owner_of_object("/home/u/x" + text + "1"), FrameOwner::user) << text;
        break;
      case FrameMatch::path_begins:
        EXPECT_NE(owner_of_object(text + "x/libfoo.so"), FrameOwner::user) << text;
        EXPECT_EQ(owner_of_object("/home/u" + text + "x/libfoo.so"), FrameOwner::user) << text;
        EXPECT_TRUE(is_system_path(text + "x")) << text;
        break;
      case FrameMatch::path_holds:
        EXPECT_EQ(owner_of_object("/home/u" + text + "x/libfoo.so"), row.owner) << text;
        EXPECT_FALSE(is_system_path("/home/u" + text + "x")) << text;
        break;
      case FrameMatch::symbol_begins:
        EXPECT_EQ(owner_of_symbol(text + "x"), row.owner) << text;
        break;
      case FrameMatch::symbol_holds:
        EXPECT_EQ(owner_of_symbol("_Z1x" + text), row.owner) << text;
        break;
      case FrameMatch::source_holds:
        EXPECT_EQ(owner_of_source("/x" + text + "y.h"), row.owner) << text;
        break;
      default:
        ADD_FAILURE() << "a row of Python's among the native: " << text;
    }
    EXPECT_TRUE(seen.insert(std::to_string(static_cast<int>(row.match)) + text).second) << text << " twice";
  }
}

TEST(NativeFrames, TheUsersOwnAreTheUsers) {
  for (const char* path :
       {"/home/u/train", "/home/u/build/libfoo.so", "/opt/app/bin/solver", "/srv/libcudakernels.so"})
    EXPECT_EQ(owner_of_object(path), FrameOwner::user) << path;
  for (const char* symbol : {"main", "_Z5solvePf", "", "solve_cuda", "_start_solver"}) {
    const bool start = std::string_view(symbol).starts_with("_start");
    EXPECT_EQ(owner_of_symbol(symbol), start ? FrameOwner::plumbing : FrameOwner::user) << symbol;
  }
  for (const char* file : {"/home/u/src/solver.cu", "solver.cu", "/home/u/include/solver.h"})
    EXPECT_EQ(owner_of_source(file), FrameOwner::user) << file;
}

}  // namespace
}  // namespace kshim::test
