// SPDX-License-Identifier: Apache-2.0
// What becomes of a program after a line that tells of a failure: it dies of it, does without, or dies of
// another thing.
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/verbs/explain.h"
#include "tests/explain/explained.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

const std::string kNoDevice =
    "E cuda_driver.cc:266] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n";
const std::string kCompiled =
    "W TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0. CUDA "
    "kernels will be jit-compiled from PTX\n";

Severity severity_of(const std::string& log) {
  const Explanation explanation = explained(log);
  return explanation.findings.empty() ? Severity::none : explanation.findings.front().severity;
}

TEST(Course, WhatTheProgramDoesWithoutIsAWarning) {
  EXPECT_EQ(severity_of(kNoDevice), Severity::error);
  EXPECT_EQ(severity_of(kNoDevice + "Epoch 1/5\n"), Severity::warning);
  EXPECT_EQ(severity_of("W Could not load dynamic library 'libcudart.so.11.0'; dlerror: none\n"
                        "I Ignore above cudart dlerror if you do not have a GPU set up on your machine.\n"),
            Severity::warning);
  EXPECT_EQ(
      severity_of("W Falling back to the CUDA driver for PTX compilation; ptxas does not support CC 8.9\n"),
      Severity::warning);
  EXPECT_EQ(severity_of("WARNING: CUDA error: no kernel image is available for execution on the device - "
                        "falling back to eager\nINFO: training finished OK\n"),
            Severity::warning);
}

TEST(Course, WhatWasThrownIsNotSurvivedByTheStepsOfOtherProcesses) {
  const std::string thrown =
      "[rank1]: RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
  EXPECT_EQ(severity_of(thrown + "step 10 loss 0.3\n"), Severity::error);
  EXPECT_EQ(severity_of(thrown + "[rank0]: job finished\n"), Severity::error);
}

// Steps that are still printed after a kernel was refused may count what nobody computed.
TEST(Course, StepsDoNotExcuseAMissingKernel) {
  EXPECT_EQ(severity_of("CUDA error 209 at main.cu:3\nstep 10\n"), Severity::error);
}

TEST(Course, AnotherDeathIsNamed) {
  const Explanation explanation = explained(kNoDevice +
                                            "Epoch 1/5\n"
                                            "Traceback (most recent call last):\n"
                                            "  File \"train.py\", line 20, in <module>\n"
                                            "ValueError: Input 0 of layer \"dense\" is incompatible\n");
  EXPECT_EQ(explanation.line, 5U);
  EXPECT_NE(explanation.quote.find("ValueError"), std::string::npos);
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings.front().severity, Severity::warning);
  EXPECT_TRUE(std::any_of(explanation.notes.begin(), explanation.notes.end(),
                          [](const std::string& note) { return note.find("line 5") != std::string::npos; }));
}

TEST(Course, AWarningThatItWorksDoesNotHideWhatFailed) {
  for (const char* end : {"", "Aborted (core dumped)\n"}) {
    const Explanation explanation = explained(
        kCompiled +
        "InternalError: 'cuLaunchKernel(...)' failed with 'CUDA_ERROR_INVALID_HANDLE' [Op:Cast]\n" + end);
    EXPECT_EQ(explanation.line, 2U);
    ASSERT_EQ(explanation.findings.size(), 1U);
    EXPECT_EQ(explanation.findings.front().severity, Severity::error);
    EXPECT_LE(explanation.findings.front().confidence, 0.5);
  }
  EXPECT_EQ(explained(kCompiled).findings.front().cause, Cause::jit_tax);
}

TEST(Course, AnAssertionIsQuotedAndTheTracebackPlacesIt) {
  const Explanation explanation = explained(
      "Indexing.cu:1290: f: block: [60,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` "
      "failed.\n"
      "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 88, in <module>\n"
      "RuntimeError: CUDA error: device-side assert triggered\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings.front().cause, Cause::device_fault);
  EXPECT_NE(explanation.quote.find("srcSelectDimSize"), std::string::npos);
  ASSERT_EQ(explanation.findings.front().where.size(), 1U);
  EXPECT_EQ(explanation.findings.front().where.front().line, 88U);
}

}  // namespace
}  // namespace kshim::test
