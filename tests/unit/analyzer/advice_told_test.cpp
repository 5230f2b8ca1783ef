// SPDX-License-Identifier: Apache-2.0
// What was told of a machine contradicts itself, is served already, or is beyond what a package can be built
// for.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/reach.h"
#include "analyzer/diagnose/program.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ComputeCapability;
using image::Version;

Facts told(Cause cause, const char* package, const char* version, std::optional<ComputeCapability> device) {
  Facts at;
  at.cause = cause;
  at.package.software = package;
  at.package.version = version;
  at.gpu.cc = device;
  at.process.python = true;
  return at;
}

// All that is said, a line for each sentence and command.
std::string told_text(const Advice& advice) {
  std::string out;
  for (const Fix& fix : advice.fixes)
    out += "fix " + fix.title + "\n" + join(fix.commands, "\n") + "\n" + fix.why + "\n" + fix.caveat + "\n";
  for (const DeadEnd& row : advice.dead_ends) out += "not " + row.action + ": " + row.why + "\n";
  for (const std::string& remark : advice.remarks) out += "and " + remark + "\n";
  return out;
}

void expect(const Facts& at, const std::vector<const char*>& says, const std::vector<const char*>& never) {
  const std::string text = told_text(advise_on(at));
  for (const char* part : says) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  for (const char* part : never) EXPECT_EQ(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

TEST(AdviceTold, WhoInstalledAPackageHasNoSourceToMend) {
  Facts at = told(Cause::kernel_missing_from_image, "", "0.9.1", ComputeCapability{9, 0});
  at.package.name = "vllm";
  at.package.manager = "pip";
  at.file.path = "/v/lib/python3.11/site-packages/vllm/_C.abi3.so";
  at.file.origin = Origin::installed;
  const Advice installed = advise_on(at);
  ASSERT_FALSE(installed.fixes.empty());
  EXPECT_EQ(installed.fixes[0].commands, std::vector<std::string>{"python -m pip index versions vllm"});
  at.file.origin = Origin::program;
  at.package.name = {};
  const Advice own = advise_on(at);
  ASSERT_FALSE(own.fixes.empty());
  EXPECT_EQ(own.fixes[0].kind, FixKind::code);
}

TEST(Told, ADriverThatDoesNotDriveTheGpu) {
  Facts at = told(Cause::no_image_for_arch, "", "", ComputeCapability{12, 0});
  at.driver.cuda = {12, 4};
  at.driver.module = "550.54.15";
  expect(at, {"fix Update the driver to 570.26 or newer", "does not support this GPU", "do not match"},
         {"is fine", "serves this GPU already"});
  at.gpu.cc = ComputeCapability{6, 1};
  expect(at, {"Your driver (550.54.15, for CUDA 12.4) is fine"}, {"do not match"});
  at.driver.module = "590.44.01";
  at.driver.cuda = {13, 1};
  expect(at, {"fix Install a driver of branch R580", "R580 is the last branch for Pascal GPUs"},
         {"is fine", "not updating the driver"});
  // On Windows, R580 goes up to 582.
  at.driver.module = "582.28";
  at.driver.cuda = {13, 0};
  expect(at, {"is fine"}, {"do not match"});
}

TEST(Told, DriversByTheirBranch) {
  const auto of = [](ComputeCapability cc, Version driver, const char* module) {
    return driver_support(*find_gpu(cc), driver, module);
  };
  EXPECT_EQ(of({8, 9}, {11, 4}, ""), DriverSupport::too_old);
  EXPECT_EQ(of({8, 9}, {}, "515.43.04"), DriverSupport::too_old);
  EXPECT_EQ(of({8, 9}, {11, 8}, "520.61.05"), DriverSupport::yes);
  EXPECT_EQ(of({3, 5}, {11, 4}, "475.14"), DriverSupport::yes);
  EXPECT_EQ(of({3, 5}, {}, "495.29.05"), DriverSupport::too_new);
  EXPECT_EQ(of({7, 0}, {13, 1}, ""), DriverSupport::too_new);
  EXPECT_EQ(of({7, 5}, {13, 3}, "610.43.02"), DriverSupport::yes);
  EXPECT_EQ(of({8, 7}, {12, 6}, "540.4.0"), DriverSupport::yes) << "a Jetson's driver has numbers of its own";
  EXPECT_EQ(of({8, 6}, {}, ""), DriverSupport::unknown);
  EXPECT_EQ(of({8, 6}, {}, "of no number"), DriverSupport::unknown);
}

TEST(Told, AnInstalledBuildThatServesTheGpu) {
  struct Row {
    const char* version;
    const char* variant;
  };
  for (const Row& row :
       {Row{"2.4.0", "cu121"}, Row{"2.0.1", "cu117"}, Row{"2.1.0", "cu121"}, Row{"2.3.1", "cu121"},
        Row{"2.4.0", "cu124"}, Row{"2.5.1", "cu124"}, Row{"2.6.0", "cu124"}, Row{"2.7.0", "cu126"},
        Row{"2.8.0", "cu128"}, Row{"2.9.1", "cu130"}}) {
    Facts at = told(Cause::no_image_for_arch, "torch", row.version, ComputeCapability{8, 9});
    at.package.variant = row.variant;
    expect(at, {"has sm_86 itself", "EXTENSION", "not installing PyTorch again"},
           {"fix Install PyTorch", "torchvision", "installing the build for"});
    at.package.platform = "windows x86_64";
    expect(at, {"itself", "EXTENSION"}, {"fix Install PyTorch"});
    at.package.platform.clear();
    // What the program said of itself is another build.
    at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_90"), {}}};
    expect(at, {"fix Install PyTorch"}, {"EXTENSION"});
  }
}

TEST(Told, TensorFlowOfThePast) {
  expect(told(Cause::no_image_for_arch, "tensorflow", "", ComputeCapability{12, 0}),
         {"nvcr.io/nvidia/tensorflow:", "No build of TensorFlow that pip installs"},
         {"==1.4", "pip install --"});
  expect(told(Cause::no_image_for_arch, "tensorflow", "2.15.0", ComputeCapability{3, 0}),
         {"No build of TensorFlow that pip installs", "asks for CUDA 11.8"},
         {"==1.4", "pip install --", "bazel"});
  expect(told(Cause::no_image_for_arch, "tensorflow", "1.12.0", ComputeCapability{3, 0}),
         {"'tensorflow-gpu==1.4.*'"}, {"and-cuda"});
  expect(told(Cause::no_image_for_arch, "tensorflow", "2.4.1", ComputeCapability{8, 9}),
         {"'tensorflow[and-cuda]"}, {"tensorflow-gpu"});
}

TEST(Told, SourcesThatStillTakeTheToolkit) {
  expect(told(Cause::no_image_for_arch, "torch", "2.9.1", ComputeCapability{3, 5}),
         {"--branch v2.7.0 ", "/usr/local/cuda-11.8", "CUDA 8.0 to 11.8 can target sm_35", "from 2.9 on"},
         {});
  expect(told(Cause::no_image_for_arch, "torch", "2.4.0", ComputeCapability{3, 5}), {"--branch v2.4.0 "}, {});
  expect(told(Cause::no_image_for_arch, "torch", "2.4.0", ComputeCapability{3, 0}),
         {"--branch v1.12.0 ", "/usr/local/cuda-10.2", "whether all of the source compiles"}, {});
  EXPECT_EQ(oldest_cuda_of("torch", "2.15.0"), (Version{12, 6}));
  EXPECT_EQ(first_beyond("torch", {11, 8}), "2.9");
  EXPECT_FALSE(source_release_for("torch", "2.9.1", {3, 0}, {}, kLinux).value().same);
}

TEST(Told, PackagesThatNoRebuildMends) {
  expect(told(Cause::library_refuses, "triton", "", ComputeCapability{6, 1}), {"TORCHDYNAMO_DISABLE=1"},
         {"pip install"});
  Facts numba = told(Cause::ptx_newer_than_driver, "numba-cuda", "", std::nullopt);
  numba.call.code = 222;
  numba.file.origin = Origin::memory;
  numba.images.ptx = {8, 5};
  numba.driver.reads = {8, 2};
  expect(numba, {"'cuda-toolkit[nvcc,nvvm,nvrtc]==12.2.*'", "fix Update the driver to 555.42.02"},
         {"CUDA_HOME=", "an older CUDA runtime"});
  expect(told(Cause::no_image_for_arch, "paddlepaddle-gpu", "3.2.0", ComputeCapability{5, 2}),
         {"-DCUDA_ARCH_NAME=Manual -DCUDA_ARCH_BIN=\"52\""}, {"--no-binary"});
  expect(told(Cause::no_image_for_arch, "ggml", "", ComputeCapability{6, 1}), {"DGGML_CUDA=ON"},
         {"installing a CUDA toolkit"});
  expect(told(Cause::fork_after_init, "torch", "", std::nullopt), {"set_start_method('spawn')"},
         {"python -c"});
}

TEST(Told, VersionsOfADriver) {
  Facts at = told(Cause::ptx_newer_than_driver, "", "", std::nullopt);
  at.call.code = 222;
  at.driver.cuda = {12, 4};
  expect(at, {"fix Update the driver to 555.42.02", "fix Build it with CUDA 12.4 or older"}, {});
  Facts old = told(Cause::driver_too_old, "torch", "2.9.0", std::nullopt);
  old.package.variant = "cu130";
  old.call.code = 35;
  old.driver.runtime = {13, 0};
  old.driver.cuda = {12, 2};
  expect(old, {"fix Install PyTorch 2.9.0 for CUDA 12.6", "/whl/cu126", "fix Update the driver to 580.65.06"},
         {});
  old.gpu.cc = ComputeCapability{3, 5};
  old.driver.cuda = {11, 4};
  expect(old, {"not updating the driver: R470", "/usr/local/cuda-11.8"}, {"fix Update the driver"});
  Facts image = told(Cause::driver_too_old, "", "", std::nullopt);
  image.call.code = 35;
  image.driver.runtime = {12, 4};
  image.driver.asked_by_container = true;
  expect(image, {"fix Update the driver to 550.54.14", "fix Use an image for an older CUDA"}, {});
}

TEST(Told, ThorByBothOfItsNames) {
  for (const ComputeCapability cc : {ComputeCapability{10, 1}, ComputeCapability{11, 0}})
    expect(told(Cause::no_image_for_arch, "", "", cc), {"sm_110"}, {"building with a CUDA newer"});
  Facts at = told(Cause::no_image_for_arch, "", "", ComputeCapability{10, 1});
  at.images.toolkit = {12, 9};
  expect(at, {"sm_101"}, {"building with a CUDA newer"});
}

TEST(Told, SwitchesThatNobodyListed) {
  expect(told(Cause::ptx_jit_disabled, "", "", std::nullopt),
         {"env -u CUDA_DISABLE_PTX_JIT -u CUDA_DISABLE_JIT PROGRAM"}, {"FORCE"});
  Facts at = told(Cause::sass_bypassed, "", "", ComputeCapability{8, 6});
  expect(at, {"env -u CUDA_FORCE_PTX_JIT -u CUDA_FORCE_JIT PROGRAM"}, {"DISABLE"});
  at.process.program = command_line({"./a b", "--x=1"});
  expect(at, {"env -u CUDA_FORCE_PTX_JIT -u CUDA_FORCE_JIT './a b' --x=1\n"}, {"PROGRAM"});
  at.driver.switches.force_jit = true;
  expect(at, {"unset CUDA_FORCE_JIT"}, {"env -u"});
}

TEST(Told, MemoryThatDidNotSuffice) {
  expect(told(Cause::out_of_memory, "", "", ComputeCapability{8, 6}), {"nvidia-smi"}, {"images fit"});
}

TEST(Told, ACommandLineThatCanBeTyped) {
  EXPECT_EQ(command_line({"python", "train.py", "--name", "it is"}), "python train.py --name 'it is'");
  EXPECT_EQ(command_line({"python", "it's"}), "") << "each shell writes a quote in its own way";
  EXPECT_EQ(command_line({}), "");
  EXPECT_EQ(command_line({"python", "-c", "a\nb"}), "") << "two lines";
  EXPECT_EQ(command_line({"x", std::string(200, 'y')}), "") << "too long to be read";
  EXPECT_EQ(command_line({"python", "--token=…"}), "") << "hidden by the shim";
  EXPECT_EQ(command_line({"A=b", "c"}), "") << "an assignment to the shell";
  const auto typed = [](std::string_view pattern, const TemplateWords& words, const std::string& program) {
    return text_of(command_of(pattern, words, &program));
  };
  EXPECT_EQ(typed("env -u X PROGRAM", {}, "./PROGRAM PROGRAM"), "env -u X ./PROGRAM PROGRAM");
  EXPECT_EQ(typed("ls", {}, "x"), "ls");
  EXPECT_EQ(typed("X={a} PROGRAM # {a}", {{"a", "1"}}, "run '{a}'"), "X=1 run '{a}' # 1")
      << "braces of the program's own are its own";
  EXPECT_EQ(typed("X={a} PROGRAM", {{"a", "PROGRAM"}}, "run"), "X=PROGRAM run");
  const std::string program;
  EXPECT_TRUE(command_of("env -u X PROGRAM", {}, &program).names_program) << "it has a place for it";
  EXPECT_FALSE(command_of("env -u X PROGRAM").names_program) << "the word stays, whatever failed";
  EXPECT_FALSE(command_of("ls", {}, &program).names_program);
}

// What a launcher or a pool started ends at once, or waits forever, where somebody types it.
TEST(Told, ACommandLineThatIsAnotherProgramsDoing) {
  ProcessRecord process;
  process.argv = {"python", "train.py"};
  EXPECT_EQ(command_line_of(process), "python train.py");
  process.rank = 3;
  EXPECT_EQ(command_line_of(process), "") << "of torchrun or mpirun";
  process.rank.reset();
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{"python", "-c",
                                 "from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)"},
        {"python", "-c", "from multiprocessing.forkserver import main; main(5, 6)"},
        {"python", "-m", "ipykernel_launcher", "-f", "/tmp/tmp1.json"},
        {"python", "-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"}}) {
    process.argv = argv;
    EXPECT_EQ(command_line_of(process), "") << argv.back();
  }
}

TEST(Told, HidingAGpuFromALaunchersProcesses) {
  Facts at = told(Cause::no_image_for_arch, "torch", "2.9.1", ComputeCapability{6, 1});
  at.gpu.serving = "0";
  expect(at, {"CUDA_VISIBLE_DEVICES=0 PROGRAM"}, {"launcher"});
  at.process.ranked = true;
  expect(at, {"CUDA_VISIBLE_DEVICES=0 PROGRAM", "have its launcher start fewer processes"}, {});
}

// pip knows no release that has no wheel for its own Python.
TEST(Told, AReleaseThatThePythonHas) {
  Facts at = told(Cause::no_image_for_arch, "torch", "2.0.1", ComputeCapability{12, 0});
  at.driver.cuda = {13, 0};
  expect(at, {"'torch==2.7.*'", "whl/cu128"}, {"it needs Python"});
  at.process.python_version = "3.14";  // from 2.9 on
  expect(at, {"Install PyTorch 2.9 for CUDA 12.8", "'torch==2.9.*'"}, {"it needs Python"});
  at.process.python_version = "3.9";
  expect(at, {"'torch==2.7.*'", "whl/cu128"}, {"it needs Python"});
  at.process.python_version = "3.8";  // nothing for Blackwell
  expect(at, {"'torch==2.7.*'", "it needs Python 3.9 or newer, and this is 3.8"}, {});
}

}  // namespace
}  // namespace kshim::test
