// SPDX-License-Identifier: Apache-2.0
// Where a fix goes: to the Python that failed, with what is installed there.
#include <gtest/gtest.h>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/commands.h"
#include "analyzer/owner/databases.h"
#include "report_text.h"

namespace kshim::test {
namespace {

PythonEnvironment venv() { return {.prefix = "/v", .interpreter = "/v/bin/python", .installed = {}}; }

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

AdviceInput torch_on_rtx_5090() {
  AdviceInput at;
  at.cause = Cause::no_image_for_arch;
  at.object = "/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so";
  at.origin = Origin::installed;
  at.manager = "pip";
  at.package = "torch";
  at.package_version = "2.7.1+cu126";
  at.device = {12, 0};
  at.driver = {13, 0};
  at.python = at.torch = true;
  at.have = {{image::ImageKind::cubin, *image::parse_arch("sm_90"), {}}};
  return at;
}

// 3 GB of libraries that stay the same are not fetched again, and nothing is installed that was not there.
TEST(Interpreter, PyTorchsPackagesKeepTheirVersions) {
  AdviceInput at = torch_on_rtx_5090();
  at.python_env = venv();
  at.python_env.installed = {{"torch", "2.7.1+cu126"}, {"torchvision", "0.22.1+cu126"}};
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
