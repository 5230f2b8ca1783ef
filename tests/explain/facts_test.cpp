// SPDX-License-Identifier: Apache-2.0
// Facts that stand beside a failure: of pasted sessions, of requirements, of what built a package.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "analyzer/input/log/miner.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/explain.h"
#include "tests/explain/explained.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

LogFacts clues_of(const std::string& text) {
  LogParser miner;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) miner.line(line);
  return miner.take();
}

std::string devices_of(const std::string& text) {
  std::string out;
  for (const DeviceMention& device : clues_of(text).devices)
    out += std::string(image::to_name(device.cc).view()) + ' ';
  return out;
}

TEST(Facts, ASessionThatWasPasted) {
  const LogFacts clues = clues_of(
      ">>> torch.__version__\n'2.5.1+cu124'\n>>> torch.version.cuda\n'12.4'\n"
      ">>> torch.cuda.get_arch_list()\n['sm_50', 'sm_90', 'compute_90']\n"
      ">>> torch.cuda.get_device_capability()\n(12, 0)\n");
  ASSERT_EQ(clues.devices.size(), 1U);
  EXPECT_EQ(clues.devices.front().cc, (image::ComputeCapability{12, 0}));
  ASSERT_EQ(clues.lists.size(), 1U);
  EXPECT_EQ(clues.lists.front().images.size(), 3U);
  ASSERT_EQ(clues.packages.size(), 1U);
  EXPECT_EQ(clues.packages.front().version, "2.5.1");
  EXPECT_EQ(clues.packages.front().variant, "cu124");
  EXPECT_EQ(clues.toolkit, (image::Version{12, 4}));
}

TEST(Facts, OneLineOfPrintHoldsTheListAndTheGpu) {
  const LogFacts clues = clues_of("2.9.0+cu130 ['sm_80', 'sm_90', 'sm_110'] (8, 7)\n");
  ASSERT_EQ(clues.devices.size(), 1U);
  EXPECT_EQ(clues.devices.front().cc, (image::ComputeCapability{8, 7}));
  ASSERT_EQ(clues.lists.size(), 1U);
  EXPECT_EQ(clues.lists.front().images.size(), 3U);
}

TEST(Facts, TheColumnsOfAListOfPackages) {
  const LogFacts clues = clues_of("torch                     2.6.0+cu118\ntriton                    3.2.0\n");
  ASSERT_EQ(clues.packages.size(), 2U);
  EXPECT_EQ(clues.packages.front().version, "2.6.0");
  EXPECT_EQ(clues.packages.front().variant, "cu118");
  EXPECT_EQ(clues.packages.back().version, "3.2.0");
}

TEST(Facts, TheIndexOfPyTorchIsOneThatTheDriverRuns) {
  const auto remedy = [](const char* driver) {
    const Explanation found =
        explain_text(std::string(driver) + "\nAssertionError: Torch not compiled with CUDA enabled\n", {});
    return found.notes.size() == 2 ? found.notes[1] : std::string();
  };
  EXPECT_NE(remedy("NVIDIA-SMI 470.82 Driver Version: 470.82 CUDA Version: 11.4").find("/whl/cu118"),
            std::string::npos);
  EXPECT_NE(remedy("NVIDIA-SMI 560.35 Driver Version: 560.35 CUDA Version: 12.6").find("/whl/cu12"),
            std::string::npos);
}

struct Said {
  const char* text;
  const char* device;
  image::Version toolkit;
  const char* driver;
  int images;  ///< architectures of what was built
};

TEST(Facts, AsProgramsAndPeopleWordThem) {
  const Said rows[] = {
      {"major=3, minor=5", "3.5 ", {}, "", 0},
      {"name: x major: 6 minor: 1 memoryClockRate", "6.1 ", {}, "", 0},
      {"compute capability: (6, 1)", "6.1 ", {}, "", 0},
      {"RTX 3060 (31.0.15.4601)", "8.6 ", {}, "546.01", 0},
      {"Display: Intel UHD, 31.0.101.2111", "", {}, "", 0},
      {"Highest compute capability among GPUs detected: 8.6", "8.6 ", {}, "", 0},
      {"GPU #0: SM 3.0 2048 MB", "3.0 ", {}, "", 0},
      {"I have two Geforce 820M", "2.1 ", {}, "", 0},
      {"Google Colab T4", "7.5 ", {}, "", 0},
      {"an instance with a K80", "3.7 ", {}, "", 0},
      {"the new a4000 GPU", "8.6 ", {}, "", 0},
      {"train.py on 4090", "8.9 ", {}, "", 0},
      {"4090 images loaded", "", {}, "", 0},
      {"Platform: CUDA Toolkit 10.1, Driver: 418.67", "", {10, 1}, "418.67", 0},
      {"CUDA 9.1", "", {9, 1}, "", 0},
      {"nvidia driver 390 and CUDA 9.1", "", {9, 1}, "390", 0},
      {"two Titan X Pascals", "6.1 ", {}, "", 0},
      {"cuda\xe7\x89\x88\xe6\x9c\xac\xef\xbc\x9a"
       "11.2",
       "",
       {11, 2},
       "",
       0},
      {"\xe9\xa9\xb1\xe5\x8a\xa8\xe7\x89\x88\xe6\x9c\xac: 450.102.04", "", {}, "450.102.04", 0},
      {"/usr/local/cuda-8.0/bin/nvcc", "", {8, 0}, "", 0},
      {"requires CUDA 11.8", "", {}, "", 0},
      {"CUDA 11.8 or newer", "", {}, "", 0},
      {"CUDA Runtime Version: 11020", "", {11, 2}, "", 0},
      {"-- Found CUDA: /usr/local/cuda (found version \"9.1\")", "", {9, 1}, "", 0},
      {"| NVIDIA-SMI 450.51.05 Driver Version: 450.51.05 CUDA Version: 11.0 |", "", {}, "450.51.05", 0},
      {"driver 31.0.15.3623", "", {}, "536.23", 0},
      {"nvidia-driver-535", "", {}, "535", 0},
      {"the host has 535.129 (R535 series, CUDA 12.2 native)", "", {}, "535", 0},
      {"the file has SM 8.0 cubins present", "", {}, "", 1},
      {"CUDA compute capabilities: 3.5, 6.0 built in", "", {}, "", 2},
      {"    arch = sm_60", "", {}, "", 1},
      {"the old card (K80) stays", "3.7 ", {}, "", 0},
      {"needs driver 525.60.13 or newer", "", {}, "", 0},
      {"driver: 500 requests", "", {}, "", 0},
      {"nvcc -O3 -arch=sm_52 -c a.cu", "", {}, "", 1},
      {"-DCMAKE_CUDA_ARCHITECTURES=\"80;86\"", "", {}, "", 2},
      {"-D CUDA_ARCH_BIN=7.5", "", {}, "", 1},
      {"./configure --with-cuda-arch=53", "", {}, "", 1},
      {"-DGPU_ARCH=sm_60", "", {}, "", 1},
      {"ARCHS = 600,610,1200", "", {}, "", 3},
      {"Built for compute capability 7.0", "", {}, "", 1},
  };
  for (const Said& row : rows) {
    const LogFacts clues = clues_of(std::string(row.text) + '\n');
    EXPECT_EQ(devices_of(std::string(row.text) + '\n'), row.device) << row.text;
    EXPECT_EQ(clues.toolkit, row.toolkit) << row.text;
    EXPECT_EQ(clues.kernel_module, row.driver) << row.text;
    std::size_t images = 0;
    for (const ImageList& list : clues.lists) images += list.images.size();
    EXPECT_EQ(images, static_cast<std::size_t>(row.images)) << row.text;
  }
}

TEST(Facts, TheOptionThatTellsAProjectItsArchitectures) {
  const LogFacts clues = clues_of("cmake -DCUDA_ARCHITECTURES=\"8.0 8.6+PTX\" ..\n");
  EXPECT_EQ(clues.arch_variable, "CUDA_ARCHITECTURES");
  EXPECT_TRUE(clues.arch_dots);
  ASSERT_EQ(clues.lists.size(), 1U);
  EXPECT_EQ(clues.lists.front().images.size(), 2U);
}

TEST(Facts, AnAnswerIsOneOnlyBehindItsQuestion) {
  EXPECT_EQ(devices_of("(12, 0)\n"), "");
  EXPECT_EQ(devices_of("get_device_capability()\nsome other line\n(12, 0)\n"), "");
  EXPECT_EQ(devices_of("get_device_capability(0) = (8, 6)\n"), "8.6 ");
  EXPECT_EQ(devices_of("torch.cuda.get_device_capability(device=None) (8, 9)\n"), "8.9 ");
}

TEST(Facts, ARequirementIsNoGpu) {
  EXPECT_EQ(devices_of("requires compute capability 3.0 or up, found 2.1\n"), "2.1 ");
  EXPECT_EQ(devices_of("needs compute capability 7.0, but the GPU has compute capability 6.1\n"), "6.1 ");
  EXPECT_EQ(devices_of("compute capability 8.0+\n"), "");
  EXPECT_EQ(devices_of("requires device with capability == (9, 0) but your GPU has capability (12, 0)\n"),
            "12.0 ");
  EXPECT_EQ(
      devices_of("Ignoring visible gpu device (name: x, compute capability: 3.0) . The minimum required "
                 "Cuda capability is 3.5.\n"),
      "3.0 ");
  EXPECT_EQ(devices_of("GPU 0: compute capability 8.6\n"), "8.6 ");
  for (const char* demand :
       {"if torch.cuda.get_device_capability() >= (8, 0):", "you need an sm_80 GPU at least",
        "compute capability between 5.0 and 9.0", "GPU too old: compute capability 7.0 expected",
        "compute capability 3.5 and lower is deprecated", "compute capability > 3.0",
        "capability >= (8, 0) is needed"})
    EXPECT_EQ(devices_of(std::string(demand) + '\n'), "") << demand;
  EXPECT_EQ(devices_of("requires compute capability 8.0 but your GPU has compute capability 7.5\n"), "7.5 ");
  EXPECT_EQ(devices_of("torch.cuda.get_device_capability() -> (8, 6)\n"), "8.6 ");
}

TEST(Facts, WhatAFailingRunNamedAnswers) {
  const std::string failed =
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
  const std::string first =
      "torch 2.7.0+cu128 NVIDIA GeForce RTX 4090\nDriver Version: 470.82 CUDA Version: 11.4\n";
  const std::string pause = "epoch 1\nepoch 2\nepoch 3\nepoch 4\n";
  const std::string last =
      "torch 2.4.1+cu121 NVIDIA GeForce RTX 5080\nDriver Version: 535.104 CUDA Version: 12.2\n";
  const auto of = [&](const std::string& log) { return *first_of(log).about; };
  EXPECT_EQ(of(first + pause + last + failed).gpu.cc, (image::ComputeCapability{12, 0}));
  EXPECT_EQ(of(first + pause + last + failed).package.version, "2.4.1");
  EXPECT_EQ(of(first + pause + last + failed).driver.module, "535.104");
  EXPECT_EQ(of(last + pause + first + failed).gpu.cc, (image::ComputeCapability{8, 9}));
  EXPECT_EQ(of(last + pause + first + failed).driver.cuda, (image::Version{11, 4}));
  // What stands below the failure is another story, and a demand is no release that is there.
  EXPECT_EQ(of(first + failed + pause + last).gpu.cc, (image::ComputeCapability{8, 9}));
  EXPECT_EQ(of(first + failed + pause + last).driver.module, "470.82");
  EXPECT_EQ(
      find_package(clues_of(first + "xformers requires torch==2.5.1+cu124\n" + failed), "torch")->version,
      "2.7.0");
  // GPUs of one listing are of one machine.
  EXPECT_EQ(of("GPU 0: Tesla P100\nGPU 1: NVIDIA A100\n" + failed).gpu.cc, (image::ComputeCapability{6, 0}));
}

TEST(Facts, TheCudaThatBuiltAPackageIsNotItsRelease) {
  const LogFacts clues = clues_of(
      "RuntimeError: The detected CUDA version (12.1) mismatches the version that was used to compile\n"
      "PyTorch (11.8)\ncompiled with PyTorch (11.8)\n");
  ASSERT_FALSE(clues.packages.empty());
  EXPECT_EQ(clues.toolkit, (image::Version{11, 8}));
  const LogFacts release = clues_of("xformers was built with PyTorch (2.1.0)\n");
  ASSERT_FALSE(release.packages.empty());
}

TEST(Facts, NumbersOfOtherProgramsAreNone) {
  for (const char* line :
       {"HTTP error 700", "Error 700: disk", "curl: (35) error 35", "ffmpeg exited with error 218",
        "npm ERR! errno 35", "Process finished with exit code 209"})
    EXPECT_TRUE(clues_of(line).hits.empty()) << line;
  for (const char* line :
       {"Warp CUDA error 700: x", "cuda failure 46", "error 218 from cuLinkAddData", "NVRTC: error 218"})
    EXPECT_FALSE(clues_of(line).hits.empty()) << line;
}

TEST(Facts, AmdsHipSpeaksInCudasWordsAndIsNone) {
  for (const char* text :
       {"RuntimeError: HIP error: invalid device function",
        "torch.OutOfMemoryError: HIP out of memory. Tried",
        "rocBLAS error: Cannot read TensileLibrary.dat: No such file or directory for GPU arch : gfx1031",
        "RuntimeError: No HIP GPUs are available", "HIP error 98 (CUDA error: invalid device function)"}) {
    const Explanation explanation = explain_text(text, {});
    EXPECT_TRUE(explanation.findings.empty()) << text;
    ASSERT_FALSE(explanation.notes.empty()) << text;
    EXPECT_NE(explanation.notes.front().find("not a CUDA failure"), std::string::npos) << text;
  }
}

TEST(Facts, AssumptionsAreNotSaidToStandInALog) {
  ExplainRequest options;
  options.assume_cc = image::ComputeCapability{8, 9};
  options.assume_toolkit = image::Version{11, 8};
  const Explanation explanation = explain_text("209", options);
  const std::string page = rendered(explanation, Format::text, {.verbose = true});
  EXPECT_EQ(page.find("the log names it"), std::string::npos);
  EXPECT_NE(page.find("--assume-toolkit"), std::string::npos);
}

}  // namespace
}  // namespace kshim::test
