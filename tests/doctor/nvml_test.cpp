// SPDX-License-Identifier: Apache-2.0
// Libraries of NVIDIA's name that crash, hang, leave and refuse: the doctor lives, and says which it was.
#include <gtest/gtest.h>

#include "analyzer/input/machine/facts.h"

using namespace kshim::input;

namespace {

TEST(AskNvml, WhatItSaysComesThrough) {
  const NvmlAnswers got = ask_nvml(NVML_works);
  ASSERT_TRUE(got.answered);
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.driver, "580.82.07");
  EXPECT_EQ(got.cuda, kshim::image::Version::from_cuda_number(13000));
  ASSERT_EQ(got.gpus.size(), 2U);
  EXPECT_EQ(got.gpus[0].name, "NVIDIA \"One\" (simulated)");
  EXPECT_TRUE(got.gpus[0].simulated);
  EXPECT_EQ(got.gpus[0].cc, (kshim::image::ComputeCapability{12, 1}));
  EXPECT_EQ(got.gpus[1].name, "NVIDIA \xef\xbf\xbd") << "as JSON has it";
  EXPECT_FALSE(got.gpus[1].cc.has_value());
  EXPECT_FALSE(got.gpus[1].simulated);
}

TEST(AskNvml, WhatIsBrokenIsSaid) {
  const NvmlAnswers refused = ask_nvml(NVML_refuses);
  EXPECT_EQ(refused.error, "answers: Driver/library version mismatch");
  const NvmlAnswers left = ask_nvml(NVML_leaves);
  EXPECT_EQ(left.error, "ended the process that asked it");
  const NvmlAnswers hangs = ask_nvml(NVML_hangs, std::chrono::seconds(1));
  EXPECT_EQ(hangs.error, "did not answer within 1 s");
  const NvmlAnswers crashed = ask_nvml(NVML_crashes);
  // A sanitizer turns the signal into an exit.
  const bool sanitized = crashed.error == left.error;
  EXPECT_TRUE(sanitized || crashed.error == "crashed when it was asked (signal 11)") << crashed.error;
  for (const NvmlAnswers* each : {&refused, &left, &hangs, &crashed}) EXPECT_FALSE(each->answered);
  const NvmlAnswers gone = ask_nvml("/nowhere/libnvidia-ml.so.1");
  EXPECT_FALSE(gone.answered);
  EXPECT_EQ(gone.error, "");
}

}  // namespace
