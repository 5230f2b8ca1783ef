// SPDX-License-Identifier: Apache-2.0
// Where a fix goes: to the Python that failed, with what is installed there.
#include <gtest/gtest.h>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/owner/databases.h"
#include "report_text.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

std::string for_interpreter(std::string_view command, const PythonEnvironment& python) {
  return text_of(command_of(command), {python});
}

PythonEnvironment venv() {
  return {.prefix = "/v", .interpreter = "/v/bin/python", .site = {}, .installed = {}};
}

TEST(Interpreter, PipIsTheEnvironmentsOwn) {
  EXPECT_EQ(for_interpreter("pip install 'torch==2.7.1'", venv()),
            "/v/bin/python -m pip install 'torch==2.7.1'");
  EXPECT_EQ(for_interpreter("python -m pip install a", venv()), "/v/bin/python -m pip install a");
  EXPECT_EQ(for_interpreter("A=1 pip install . && pip uninstall -y b", venv()),
            "A=1 /v/bin/python -m pip install . && /v/bin/python -m pip uninstall -y b");
  EXPECT_EQ(for_interpreter("pip install a", {}), "pip install a") << "no environment is known";
  EXPECT_EQ(for_interpreter("grep -rn 'nopip install' .", venv()), "grep -rn 'nopip install' .");
}

TEST(Interpreter, WithoutPipUvIsAsked) {
  PythonEnvironment python = venv();
  python.has_pip = false;
  EXPECT_EQ(for_interpreter("pip install a", python), "uv pip install --python /v a");
  python.prefix = "/my env";
  EXPECT_EQ(for_interpreter("pip uninstall -y a", python), "uv pip uninstall --python '/my env' -y a");
}

TEST(Interpreter, CondaGetsItsPrefix) {
  PythonEnvironment python = venv();
  EXPECT_EQ(for_interpreter("conda install a", python), "conda install a") << "not an environment of conda's";
  python.conda = true;
  EXPECT_EQ(for_interpreter("conda install a", python), "conda install --prefix /v a");
}

TEST(Interpreter, IsReadFromTheEnvironment) {
  const TemporaryFolder folder;
  const std::string site = "env/lib/python3.11/site-packages/";
  folder.write(site + "torch/lib/libtorch_cuda.so", "");
  folder.write(site + "torch-2.7.1+cu126.dist-info/METADATA", "");
  folder.write(site + "torchvision-0.22.1+cu126.dist-info/METADATA", "");
  folder.write(site + "numpy-2.0.0.dist-info/METADATA", "");
  const std::string file = (folder.path() / site / "torch/lib/libtorch_cuda.so").string();
  EXPECT_FALSE(python_environment(file, "", false).known()) << "nothing says that it is one";
  folder.write("env/pyvenv.cfg", "home = /usr/bin\nuv = 0.13.9\n");
  const PythonEnvironment got = python_environment(file, "", false);
  EXPECT_EQ(got.interpreter, (folder.path() / "env/bin/python").string());
  EXPECT_FALSE(got.has_pip);
  const std::vector<std::pair<std::string, std::string>> both = {{"torch", "2.7.1+cu126"},
                                                                 {"torchvision", "0.22.1+cu126"}};
  EXPECT_EQ(got.installed, both);
  folder.write(site + "pip/__init__.py", "");
  EXPECT_TRUE(python_environment(file, "", false).has_pip);
}

// What a command is made of: only its pattern tells.
TEST(Steps, AreOfThePattern) {
  const Command both = command_of("pip uninstall -y {old} && pip install '{new}==1.2'",
                                  {{"old", "a"}, {"new", "nvidia-cudnn-cu12"}});
  ASSERT_EQ(both.steps.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Remove>(both.steps[0].action));
  const Install* install = std::get_if<Install>(&both.steps[1].action);
  ASSERT_NE(install, nullptr);
  ASSERT_EQ(install->packages.size(), 1U);
  EXPECT_EQ(install->packages[0].name, "nvidia-cudnn-cu12");
  EXPECT_EQ(install->packages[0].release, "==1.2");
  EXPECT_TRUE(both.steps[1].if_done);
  // The user's own words are no steps, and take nothing for granted.
  const std::string program = "python 'pip install x && sudo y.py'";
  const Command own = command_of("CUDA_VISIBLE_DEVICES=1 PROGRAM", {}, &program);
  ASSERT_EQ(own.steps.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<say::Run>(own.steps[0].action));
  EXPECT_EQ(own.needs, need::none);
  ASSERT_EQ(own.steps[0].with.size(), 1U);
  EXPECT_EQ(own.steps[0].with[0].name, "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(text_of(own, {venv()}), "CUDA_VISIBLE_DEVICES=1 python 'pip install x && sudo y.py'");
  EXPECT_TRUE(command_of("rm -r {removable}", {{"removable", ""}}).empty()) << "a word is not known";
  const Command set = command_of("export A={a}; nvcc --version", {{"a", "'b; c'"}});
  ASSERT_EQ(set.steps.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<SetEnv>(set.steps[0].action));
  EXPECT_EQ(text_of(set), "export A='b; c'; nvcc --version");
}

Facts torch_on_rtx_5090() {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.file.path = "/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so";
  at.file.origin = Origin::installed;
  at.package.manager = "pip";
  at.package.name = "torch";
  at.package.version = "2.7.1+cu126";
  at.gpu.cc = {12, 0};
  at.driver.cuda = {13, 0};
  at.process.python = at.process.torch = true;
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_90"), {}}};
  return at;
}

// 3 GB of libraries that stay the same are not fetched again, and nothing is installed that was not there.
TEST(Interpreter, PyTorchsPackagesKeepTheirVersions) {
  Facts at = torch_on_rtx_5090();
  at.process.python_env = venv();
  at.process.python_env.installed = {{"torch", "2.7.1+cu126"}, {"torchvision", "0.22.1+cu126"}};
  const Advice advice = advise_on(at);
  ASSERT_FALSE(advice.fixes.empty());
  EXPECT_EQ(advice.fixes[0].id, "install-build");
  ASSERT_EQ(advice.fixes[0].commands.size(), 1U);
  EXPECT_EQ(advice.fixes[0].commands[0],
            "/v/bin/python -m pip install 'torch==2.7.1+cu128' 'torchvision==0.22.1+cu128' --index-url "
            "https://download.pytorch.org/whl/cu128");
}

}  // namespace
}  // namespace kshim::test
