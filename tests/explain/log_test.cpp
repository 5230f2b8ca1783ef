// SPDX-License-Identifier: Apache-2.0
// Whole logs: which line decides, what is read beside it, and input that no log should be.
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/input/log/miner.h"
#include "analyzer/verbs/explain.h"
#include "tests/explain/explained.h"

namespace kshim::explain {
namespace {

using analysis::Cause;

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

TEST(Log, TheFailureDecidesAndTheWarningBearsWitness) {
  const Explanation explanation = explained(kTraining);
  EXPECT_EQ(explanation.line, 10U);
  ASSERT_EQ(explanation.findings.size(), 1U);
  const analysis::Finding& finding = explanation.findings.front();
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
                               "ELF file    1: x.1.sm_90a.cubin\n"};
  const Cause causes[] = {Cause::unknown, Cause::ptx_newer_than_device, Cause::arch_specific_image};
  for (std::size_t i = 0; i < std::size(lists); ++i) {
    const Explanation explanation = explained("compute capability 8.9\nlibx.so:\n" + lists[i] + error);
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
  Options options;
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
  EXPECT_FALSE(explained("").recognised);
  EXPECT_FALSE(explained(std::string(1 << 20, '\0')).recognised);
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
  EXPECT_FALSE(explained(log + "the first run takes minutes\n").recognised);
  EXPECT_TRUE(explained("the first run takes minutes\n").recognised);
}

}  // namespace
}  // namespace kshim::explain
