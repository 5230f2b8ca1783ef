// SPDX-License-Identifier: Apache-2.0
// Whole logs: which line decides, what is read beside it, and input that no log should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/input/log/miner.h"
#include "analyzer/verbs/explain.h"
#include "tests/explain/explained.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kTraining =
    "PyTorch version: 2.9.1+cu128\n"
    "GPU 0: NVIDIA GeForce MX330\n"
    "Nvidia driver version: 580.82.07\n"
    "UserWarning: Found GPU0 NVIDIA GeForce MX330 which is of cuda capability 6.1.\n"
    "    Minimum and Maximum cuda capability supported by this version of PyTorch is (7.0) - (12.0)\n"
    "Traceback (most recent call last):\n"
    "  File \"/home/u/proj/train.py\", line 9, in main\n"
    "    x = torch.zeros(3, device=\"cuda\") + 1\n"
    "  File \"/home/u/venv/lib/python3.11/site-packages/torch/_tensor.py\", line 39, in wrapped\n"
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n";

// A line in bold type is read as without it, and quoted as it stands.
TEST(Log, TheQuotedLineIsTheLogs) {
  for (const char* line :
       {"y = f(**kw)  # RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "**RuntimeError:** CUDA **error**: no kernel image is available for execution on the device",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device ***"}) {
    const Explanation explanation = explained(std::string(line) + "\n");
    EXPECT_EQ(explanation.quote, line);
    ASSERT_FALSE(explanation.findings.empty()) << line;
    EXPECT_EQ(explanation.findings[0].code, 209);
  }
}

// PyTorch 2.15 prints the driver's error log below its own error, CUDA_LOG_FILE=stderr above it.
TEST(Log, TheDriversLogNamesTheGpuAndDecidesNothingElse) {
  const std::string torch =
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
  const std::string driver =
      "[12:00:01.123][4711][CUDA][E] No device code available for GPU ISA 120\n"
      "[12:00:01.124][4711][CUDA][E] Returning 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) from cuLibraryGetKernel\n";
  const std::string handled =
      "[12:00:00.001][4711][CUDA][E] No CUDA context is current to the calling thread\n"
      "[12:00:00.002][4711][CUDA][E] Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice_v2\n";
  for (const std::string& log : {torch + driver, driver + torch, handled + torch + driver}) {
    const Explanation explanation = explained(log);
    ASSERT_FALSE(explanation.findings.empty()) << log;
    const Finding& finding = explanation.findings[0];
    EXPECT_EQ(finding.cause, Cause::no_image_for_arch) << log;
    ASSERT_EQ(finding.devices.size(), 1U) << log;
    EXPECT_EQ(finding.devices[0].cc, (image::ComputeCapability{12, 0})) << log;
  }
  const Explanation memory = explained(driver + "CUDA error: out of memory\n");
  ASSERT_FALSE(memory.findings.empty());
  EXPECT_EQ(memory.findings[0].cause, Cause::out_of_memory) << "a library handled the 209";
}

TEST(Log, TheFailureDecidesAndTheWarningBearsWitness) {
  const Explanation explanation = explained(kTraining);
  EXPECT_EQ(explanation.line, 10U);
  ASSERT_EQ(explanation.findings.size(), 1U);
  const Finding& finding = explanation.findings.front();
  EXPECT_EQ(finding.cause, Cause::no_image_for_arch);
  EXPECT_GT(finding.confidence, 0.7);  // PyTorch's wheels are known
  ASSERT_EQ(finding.where.size(), 1U);
  EXPECT_EQ(finding.where.front().file, "/home/u/proj/train.py");
  EXPECT_EQ(finding.where.front().line, 9U);
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_NE(finding.fixes.front().commands.front().find("cu126"), std::string::npos);
}

TEST(Log, TheFirstFailureDecides) {
  const Explanation explanation = explained(
      "CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
      "RuntimeError: CUDA error: an illegal memory access was encountered\n");
  EXPECT_EQ(explanation.line, 1U);
  EXPECT_EQ(explanation.findings.front().cause, Cause::ptx_newer_than_driver);
  const auto& evidence = explanation.findings.front().evidence;
  EXPECT_TRUE(std::any_of(evidence.begin(), evidence.end(), [](const auto& row) {
    return row.text.find("illegal memory") != std::string::npos;
  }));
}

TEST(Log, WhatTheFileHoldsDecides) {
  const std::string error = "no kernel image is available for execution on the device\n";
  const std::string lists[] = {"ELF file    1: x.1.sm_86.cubin\n", "PTX file    1: x.1.sm_120.ptx\n",
                               "ELF file    1: x.1.sm_90a.cubin\n", "ELF file    1: x.1.sm_90a.cubin\n"};
  const char* const gpus[] = {"8.9", "8.9", "8.9", "12.0"};
  const Cause causes[] = {Cause::unknown, Cause::ptx_newer_than_device, Cause::no_image_for_arch,
                          Cause::arch_specific_image};
  for (std::size_t i = 0; i < std::size(lists); ++i) {
    const Explanation explanation =
        explained(std::string("compute capability ") + gpus[i] + "\nlibx.so:\n" + lists[i] + error);
    ASSERT_EQ(explanation.findings.size(), 1U);
    EXPECT_EQ(explanation.findings.front().cause, causes[i]) << lists[i];
  }
}

TEST(Log, TheGpuThatIsNotServedIsTheOneThatFailed) {
  const Explanation explanation = explained(
      "GPU 0: NVIDIA GeForce RTX 4080 SUPER, compute capability 8.9\n"
      "GPU 1: NVIDIA GeForce RTX 3080, compute capability 8.6\n"
      "libx.so:\nELF file    1: x.1.sm_89.cubin\nCUDA error 209\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings.front().cause, Cause::no_image_for_arch);
  ASSERT_EQ(explanation.findings.front().devices.size(), 1U);
  EXPECT_NE(text_of(explanation.findings.front().devices.front()).find("8.6"), std::string::npos);
}

TEST(Log, ToolkitsAreOlderThanGpusAndForgetThem) {
  const Explanation young = explained("CUDA toolkit 12.4\nNVIDIA GeForce RTX 5060\nCUDA error 209\n");
  EXPECT_EQ(young.findings.front().cause, Cause::no_image_for_arch);
  EXPECT_GT(young.findings.front().confidence, 0.7);
  const Explanation old = explained("CUDA toolkit 13.0\nTesla V100-SXM2-16GB\nCUDA error 209\n");
  EXPECT_GT(old.findings.front().confidence, 0.7);
  const Explanation fine = explained("CUDA toolkit 12.8\nNVIDIA GeForce RTX 5060\nCUDA error 209\n");
  EXPECT_LE(fine.findings.front().confidence, 0.5);
}

TEST(Log, AssumptionsReplaceWhatItSays) {
  ExplainRequest options;
  options.assume_cc = image::ComputeCapability{12, 0};
  const Explanation explanation = explained(
      "compute capability 8.6\nlibx.so:\nELF file    1: x.1.sm_86.cubin\nCUDA error 209\n", options);
  EXPECT_EQ(explanation.findings.front().cause, Cause::no_image_for_arch);
  EXPECT_NE(text_of(explanation.findings.front().devices.front()).find("12.0"), std::string::npos);
  EXPECT_FALSE(explanation.notes.empty());
}

TEST(Log, ControlSequencesAreTakenOut) {
  EXPECT_EQ(plain_line("\x1b[31mred\x1b[0m \x1b]0;title\atext\r"), "red text");
  EXPECT_EQ(plain_line("a\tb\x01"), "a b?");
  EXPECT_EQ(plain_line("\x1b["), "");
  EXPECT_EQ(plain_line("\x1b"), "?");
  const Explanation explanation =
      explained("\x1b[1;31mCUDA error\x1b[0m: no kernel image is available for execution on the device\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.quote.find('\x1b'), std::string::npos);
}

TEST(Log, EmptyAndBinaryAndEndlessLinesAreSurvived) {
  EXPECT_FALSE(explained("").recognized);
  EXPECT_FALSE(explained(std::string(1 << 20, '\0')).recognized);
  std::string endless(3 << 20, 'x');
  const Explanation explanation = explained(endless + "\nCUDA error 209\n");
  EXPECT_EQ(explanation.line, 2U);
  EXPECT_TRUE(std::any_of(explanation.notes.begin(), explanation.notes.end(), [](const std::string& note) {
    return note.find("overlong") != std::string::npos;
  }));
}

TEST(Log, ManyFailuresAreBounded) {
  std::string many;
  for (int i = 0; i < 100000; ++i)
    many += "CUDA error 209: GPU RTX 4090 sm_80 sm_90 torch==2." + std::to_string(i) + ".0+cu128\n";
  const Explanation explanation = explained(many);
  EXPECT_EQ(explanation.line, 1U);
  EXPECT_LE(explanation.facts.size(), 24U);
}

TEST(Log, WordsOfAPersonDoNotCountInALog) {
  std::string log;
  for (int i = 0; i < 100; ++i) log += "step " + std::to_string(i) + "\n";
  EXPECT_FALSE(explained(log + "the first run takes minutes\n").recognized);
  EXPECT_TRUE(explained("the first run takes minutes on an RTX 4090\n").recognized);
  EXPECT_FALSE(explained("the first run takes minutes\n").recognized) << "of any program";
  EXPECT_TRUE(explain_text("the first run takes minutes", {}).recognized) << "asked of kshim";
}

// What users reported (U4 to U52): the fix that must come first, by id or a part of its command, and what no
// command may hold.
struct User {
  const char* number;
  const char* log;
  Cause cause;
  const char* first;  ///< id of the first fix, or a part of its first command
  const char* never;
};

const User kUsers[] = {
    {"U4: vLLM has no way without a GPU",
     "  File \"/v/lib/python3.12/site-packages/vllm/worker.py\", line 4, in f\n"
     "nvcc fatal   : Unsupported gpu architecture 'compute_120'\n",
     Cause::nvrtc_arch_unsupported, "cuda-12.8", "CUDA_VISIBLE_DEVICES="},
    {"U4: nor has CuPy",
     "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_NO_BINARY_FOR_GPU: x\nRTX 5090\n",
     Cause::no_image_for_arch, "take-release-with-code", "CUDA_VISIBLE_DEVICES="},
    {"U13: CMake names its compiler",
     "-- The CUDA compiler identification is NVIDIA 13.0.88 with host compiler GNU 13.3.0\n"
     "nvcc fatal   : Unsupported gpu architecture 'compute_70'\n",
     Cause::nvrtc_arch_unsupported, "drop-architecture", "cuda-13"},
    {"U15",
     "[E:onnxruntime] Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: "
     "cannot open shared object file: No such file or directory\n",
     Cause::library_not_found, "onnxruntime-gpu[cuda,cudnn]", "python -c 'import onnxruntime"},
    {"U17: ComfyUI's own Python",
     "C:\\ComfyUI\\python_embeded\\Lib\\site-packages\\torch\\cuda\\__init__.py:262: UserWarning:\n"
     "NVIDIA GeForce RTX 5070 Ti\npytorch version: 2.6.0+cu124\n"
     "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
     Cause::no_image_for_arch, ".\\python_embeded\\python.exe -s -m pip install", ""},
    {"U18: CuPy takes NVRTC from elsewhere",
     "  File \"/v/lib/python3.11/site-packages/cupy/cuda/compiler.py\", line 490, in f\n"
     "cupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)\n",
     Cause::nvrtc_arch_unsupported, "cupy-cuda12x[ctk]", "PACKAGE"},
    {"U32, 53: a DLL of Windows",
     "C:\\llama\\llama-server.exe : The code execution cannot proceed because cudart64_12.dll was not "
     "found.\n",
     Cause::library_not_found, "where.exe", "LD_LIBRARY_PATH"},
    {"U32, 55: built for another CUDA",
     "  File \"/v/lib/python3.12/site-packages/vllm/platforms/cuda.py\", line 18, in <module>\n"
     "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n",
     Cause::library_not_found, "torch.version.cuda", ""},
    {"U32, 69: a name of before R470",
     "MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0\nRuntimeError: No CUDA GPUs are available\n",
     Cause::no_device, "mig_old_name", "docker"},
    {"U32, 76: a finished program",
     "/usr/share/prog/run\nCUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
     "NVIDIA-SMI 570.133.20   Driver Version: 570.133.20   CUDA Version: 12.8\n",
     Cause::ptx_newer_than_driver, "update-driver", ""},
    {"U35: a number behind my",
     "Running on my 5080 i get:\ntorch 2.5.1+cu121\nRuntimeError: CUDA error: no kernel image is available "
     "for execution on the device\n",
     Cause::no_image_for_arch, "install-build", ""},
};

TEST(Log, WhatUsersReported) {
  for (const User& user : kUsers) {
    SCOPED_TRACE(user.number);
    const Explanation explanation = explained(user.log);
    ASSERT_EQ(explanation.findings.size(), 1U);
    const Finding& finding = explanation.findings.front();
    EXPECT_EQ(finding.cause, user.cause);
    ASSERT_FALSE(finding.fixes.empty());
    const Fix& fix = finding.fixes.front();
    const bool first = fix.id == user.first ||
                       (!fix.commands.empty() && fix.commands.front().find(user.first) != std::string::npos);
    EXPECT_TRUE(first) << fix.id << ": " << fix.title;
    for (const Fix& each : finding.fixes)
      for (const std::string& command : each.commands)
        EXPECT_TRUE(*user.never == '\0' || command.find(user.never) == std::string::npos) << command;
  }
}

// U16: the number that the image asks for is a driver, which is the host's: what the user can do comes first.
TEST(Log, AnImageThatAsksForANewerCudaNamesTheDriver) {
  const Explanation explanation = explained(
      "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  const Finding& finding = explanation.findings.front();
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_EQ(finding.fixes.front().actor, Actor::you);
  const auto driver = std::ranges::find(finding.fixes, "update-driver", &Fix::id);
  ASSERT_NE(driver, finding.fixes.end());
  EXPECT_EQ(driver->actor, Actor::admin);
  EXPECT_NE(driver->title.find("580."), std::string::npos);
}

// U19: a kernel without a body, and then a failure of CUDA's: the program did not go on.
TEST(Log, AnEmptyKernelThatIsFollowedByAFailureIsAnError) {
  const std::string empty =
      "fattn.cu:437: ERROR: CUDA kernel flash_attn_ext_f16 has no device code compatible with CUDA arch "
      "700.\n";
  const Explanation failed = explained(empty + "CUDA error: unspecified launch failure\n");
  ASSERT_EQ(failed.findings.size(), 1U);
  EXPECT_EQ(failed.findings.front().severity, Severity::error);
}

// What a program was built for is not the GPU that is there.
TEST(Log, WhatItWasCompiledForIsNoGpu) {
  const Explanation explanation = explained(
      "Kokkos::Cuda::initialize ERROR: running kernels compiled for compute capability 9.0 on device with "
      "compute capability 8.0 is not supported by CUDA!\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  ASSERT_EQ(explanation.findings.front().devices.size(), 1U);
  EXPECT_EQ(explanation.findings.front().devices.front().cc, (image::ComputeCapability{8, 0}));
}

// Two kinds of GPU and one folder: the cache of one GPU is what the other one finds.
TEST(Log, ACacheThatTwoKindsOfGpuShare) {
  const auto cause_of = [](const std::string& log) {
    const Explanation explanation = explained(log);
    return explanation.findings.empty() ? Cause::unknown : explanation.findings.front().cause;
  };
  const std::string failed = "Error: CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed\n";
  const std::string nodes = "node 1: Tesla T4\nnode 2: Tesla V100\n";
  EXPECT_EQ(cause_of(nodes + "home is on a shared filesystem\n" + failed), Cause::stale_cache_artifact);
  EXPECT_NE(cause_of(nodes + failed), Cause::stale_cache_artifact);
  EXPECT_NE(cause_of("node 1: Tesla T4\nhome is on a shared filesystem\n" + failed),
            Cause::stale_cache_artifact);
}

// A line with an error and a word of CUDA's is a failure, though nobody knows more of it. Names in paths and
// addresses are no such words.
TEST(Log, NoErrorOfCudasEndsAsGreen) {
  for (const char* log : {"solver.cu(12): error: namespace \"cub\" has no member \"DeviceAdjacent\"\n",
                          "in.cpp:3:10: fatal error: cudaProfiler.h: No such file or directory\n",
                          "ld: warning: libcufft.so.11, needed by libsim.so, not found\n",
                          "nvidia-container-cli: mount error: stat failed: /proc/driver: permission\n",
                          "ERROR: the CUDA backend gave up\n"}) {
    const Finding finding = first_of(log);
    EXPECT_EQ(finding.severity, Severity::error) << log;
  }
  for (const char* log : {"error: downloading https://host/cuda_12.6.run failed with 429\n",
                          "ERROR: could not read /data/cuda/train.json\n", "CUDA is fine\n"})
    EXPECT_TRUE(explained(log).findings.empty()) << log;
}

TEST(Log, ManyVagueLinesHideNoFailureThatIsKnown) {
  std::string log;
  for (int i = 0; i < 300; ++i) log += "ERROR: the CUDA backend gave up\n";
  EXPECT_EQ(first_of(log + "CUDA error: no kernel image is available for execution on the device\n").cause,
            Cause::no_image_for_arch);
}

// It ran on Windows, and failed here.
TEST(Log, TheSystemThatFailedIsTheOneOfItsPaths) {
  const std::string failed =
      "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: ptxas application ptx input, line 9; fatal   : Unsupported "
      ".version "
      "8.5; current version is '8.4'\n";
  const auto title = [&](const std::string& before) { return first_of(before + failed).fixes.at(0).title; };
  const std::string here = title("File \"/home/ada/a.py\", line 4, in run\n");
  const std::string there = title("File \"C:\\work\\a.py\", line 4, in run\n");
  EXPECT_NE(here, there);
  EXPECT_EQ(title("it is fine on Windows\nFile \"/home/ada/a.py\", line 4, in run\n"), here);
  EXPECT_EQ(title("it is fine on Windows\nbut not on Ubuntu 24.10\n"), here);
}

TEST(Log, ANumberBelowItsHeading) {
  const std::string below = "\n  File: a/dataset.cu\n\n  Line: 26\n\n  Error code: 218\n";
  EXPECT_EQ(first_of("CUDA Error:\n" + below).code, 218);
  EXPECT_TRUE(explained("Disk error:\n" + below).findings.empty());
}

// What is not CUDA's is named.
TEST(Log, OtherPlatformsAndTheNetworkAreNamed) {
  for (const char* log :
       {"gpu.cu:97: ROCm error\n", "RuntimeError: Native API failed. Native API returns: -2\n",
        "RuntimeError: Placeholder storage has not been allocated on MPS device!\n",
        "urllib3.exceptions.NameResolutionError: Failed to resolve 'pypi.org'\n",
        "ModuleNotFoundError: No module named 'imageio\n"}) {
    const Explanation explanation = explained(log);
    EXPECT_TRUE(explanation.findings.empty()) << log;
    EXPECT_TRUE(explanation.other) << log;
  }
}

// What a build lacks is named; a search that found nothing and stopped nothing is none.
TEST(Log, WhatABuildLacksIsNamed) {
  const auto what = [](const std::string& log) {
    const Explanation found = explained(log);
    return found.findings.empty() && found.other ? found.other->what : std::string();
  };
  EXPECT_THAT(what("src/solver.h:5:10: fatal error: Eigen/Core: No such file or directory\n"),
              HasSubstr("header Eigen/Core"));
  EXPECT_THAT(what("a.cpp:3:10: fatal error: 'zstd.h' file not found\n"), HasSubstr("header zstd.h"));
  EXPECT_THAT(what("/usr/bin/ld: cannot find -lglog: No such file or directory\n"), HasSubstr("libglog"));
  EXPECT_THAT(what("CMake Error at a.cmake:230 (message):\n  Could NOT find Boost (missing: X)\n"),
              HasSubstr("Boost"));
  EXPECT_THAT(what("src/a.cpp:12:3: error: 'struct m' has no member named 'foo'\n"), HasSubstr("src/a.cpp"));
  EXPECT_EQ(what("-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)\n-- Configuring done\n"), "");
  EXPECT_EQ(explained("a.cu:3:10: fatal error: cuda_runtime.h: No such file or directory\n").findings.size(),
            1U);
}

// NVIDIA's headers that the toolkit does not have are not looked for in it.
TEST(Log, WhatTheToolkitDoesNotHaveIsNotLookedForInIt) {
  const auto deciding = [](const std::string& header) {
    return first_of("a.cpp:3:10: fatal error: " + header + ": No such file or directory\n").fixes.front();
  };
  for (const char* header : {"nvcuvid.h", "cutensor.h", "cusparseLt.h", "ffnvcodec/nvEncodeAPI.h"})
    EXPECT_THAT(core::join(deciding(header).commands, " "), Not(HasSubstr("/usr/local/cuda"))) << header;
  EXPECT_THAT(core::join(deciding("cusparse.h").commands, " "), HasSubstr("/usr/local/cuda"));
  EXPECT_THAT(first_of("OpenEncodeSessionEx failed: unsupported device (2)\n").fixes.front().commands,
              IsEmpty());
  EXPECT_FALSE(
      explained("nvcc error   : 'cudafe++' died due to signal 9 (Kill signal)\n").other->what.empty());
}

// The log's own last error is there where kshim knows none.
TEST(Log, WhatIsNotKnownIsQuoted) {
  const Explanation found = explained("start\nERROR: LoadError: UndefVarError: CuArray not defined\nend\n");
  EXPECT_FALSE(found.recognized);
  EXPECT_EQ(found.line, 2U);
  EXPECT_EQ(explained("start\nend\n").line, 0U);
  EXPECT_EQ(explained("ERROR: LoadError: UndefVarError: CuArray not defined\nepoch 3\n").line, 0U);
}

}  // namespace
}  // namespace kshim::test
