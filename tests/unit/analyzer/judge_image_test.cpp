// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/diagnose/rules.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct JudgeRow {
  const char* image;
  const char* isa;
  const char* device;
  bool fits;
  const char* reason;
};
constexpr JudgeRow kRows[] = {
    {"sm_80", "", "8.6", true, "fits"},
    {"sm_80", "", "9.0", false, "runs on 8.x GPUs only"},
    {"sm_89", "", "8.6", false, "runs on 8.9 and later 8.x GPUs only"},
    {"sm_89", "", "9.0", false, "runs on 8.9 and later 8.x GPUs only"},
    {"sm_87", "", "9.0", false, "runs on 8.7 GPUs only"},
    {"sm_80", "", "8.7", false, "desktop and Jetson code do not mix"},
    {"sm_90a", "", "9.0", true, "fits"},
    {"sm_90a", "", "10.0", false, "runs on 9.0 and on nothing else"},
    {"sm_100f", "", "10.3", true, "fits"},
    {"sm_100f", "", "12.0", false, "runs in the family of 10.0 only"},
    {"compute_80", "8.0", "9.0", true, "fits, compiled at load"},
    {"compute_90", "8.0", "8.6", false, "compiles for 9.0 and later GPUs only"},
    {"compute_90a", "8.0", "10.0", false, "runs on 9.0 and on nothing else"},
    {"compute_80", "9.0", "9.0", false, "PTX 9.0 is newer than the driver reads (8.4)"},
    {"lto_90", "", "9.0", false, "must be linked before it can run"},
};

class JudgeImage : public ::testing::TestWithParam<JudgeRow> {};

TEST_P(JudgeImage, SaysWhy) {
  const JudgeRow& row = GetParam();
  const std::string_view name = row.image;
  ImageFact fact;
  fact.candidate.kind = name.starts_with("sm_")    ? image::ImageKind::cubin
                        : name.starts_with("lto_") ? image::ImageKind::ltoir
                                                   : image::ImageKind::ptx;
  fact.candidate.arch = *image::parse_arch(name);
  if (*row.isa != '\0') fact.candidate.isa = *image::parse_version(row.isa);
  Facts facts;
  facts.gpu.cc = image::parse_arch(row.device)->cc;
  facts.driver.cuda = {12, 4};
  const ImageJudgment got = judge_image(fact, facts);
  EXPECT_EQ(got.fits, row.fits);
  EXPECT_EQ(got.reason, row.reason);
}
INSTANTIATE_TEST_SUITE_P(Table, JudgeImage, ::testing::ValuesIn(kRows));

TEST(JudgeImage, NamesWhatKeepsAFittingImageAway) {
  ImageFact cubin;
  cubin.candidate = {image::ImageKind::cubin, {{8, 6}, image::Suffix::none}, {}};
  ImageFact ptx;
  ptx.candidate = {image::ImageKind::ptx, {{8, 0}, image::Suffix::none}, {8, 0}};
  Facts facts;
  facts.gpu.cc = image::ComputeCapability{8, 6};
  facts.driver.switches.force_ptx_jit = true;
  EXPECT_EQ(judge_image(cubin, facts).reason, "would fit, but is ignored by a switch");
  facts.driver.switches = {};
  facts.driver.switches.disable_jit = true;
  EXPECT_EQ(judge_image(ptx, facts).reason, "would fit, but a switch forbids compiling");
  facts.driver.switches = {};
  facts.driver.switches.compiler_present = false;
  EXPECT_EQ(judge_image(ptx, facts).reason, "would fit, but the PTX compiler is missing");
  facts.driver.switches = {};
  cubin.has_kernel = false;
  EXPECT_EQ(judge_image(cubin, facts).reason, "fits, but lacks the kernel");
}

}  // namespace
}  // namespace kshim::test
