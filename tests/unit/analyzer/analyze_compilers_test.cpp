// SPDX-License-Identifier: Apache-2.0
// Findings about compiler libraries in the process.
#include <gmock/gmock.h>

#include "analyze_fixture.h"

namespace kshim::analysis {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ReportText refused(std::string_view layer, int code, std::string_view name, std::string_view more,
                   std::string_view cc = "6.1") {
  ReportText text;
  text.process().driver().device(0, cc, "NVIDIA Test").object(1, "/opt/cuda/lib64/libnvrtc.so.13", {});
  return text
      .record("failure", fmt::format(R"("id":1,"stage":"other","layers":[{{"layer":"{}","api":"create",)"
                                     R"("code":{},"name":"{}"}}],"device":0,"object":1,"tid":1,{})",
                                     layer, code, name, more))
      .end();
}
constexpr const char* kNvrtc13 = R"("compiler":"13.0","known":["compute_121","compute_75","compute_80"])";

TEST_F(Analyze, ACompilerThatDroppedTheGpu) {
  const Analysis got =
      run(refused("nvrtc", 5, "NVRTC_ERROR_INVALID_OPTION", fmt::format(R"("asked":"sm_61",{})", kNvrtc13)));
  ASSERT_THAT(got.findings, SizeIs(1));
  const Finding& finding = got.findings[0];
  EXPECT_EQ(finding.cause, Cause::nvrtc_arch_unsupported);
  EXPECT_EQ(got.verdict, Verdict::failure);
  EXPECT_EQ(finding.headline, "NVRTC 13.0 does not compile for compute_61");
  EXPECT_EQ(finding.object, "/opt/cuda/lib64/libnvrtc.so.13");
  EXPECT_THAT(finding.have, ElementsAre("compute_75", "compute_80", "compute_121"));
  EXPECT_EQ(finding.fixes.at(0).kind, FixKind::downgrade);
  EXPECT_THAT(finding.fixes.at(0).title, HasSubstr("CUDA 12.9 or older"));
  EXPECT_THAT(finding.dead_ends, Contains(Field(&DeadEnd::action, "updating the driver")));
  EXPECT_THAT(finding.dead_ends, Contains(Field(&DeadEnd::action, "compiling with a CUDA newer than 12.9")));
}

TEST_F(Analyze, ACompilerThatDoesNotKnowTheGpuYet) {
  const Analysis got = run(refused("nvjitlink", 6, "NVJITLINK_ERROR_INTERNAL",
                                   R"("asked":"sm_120","compiler":"12.4","known":null)", "12.0"));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].headline, "nvJitLink 12.4 does not compile for compute_120");
  EXPECT_EQ(got.findings[0].fixes.at(0).kind, FixKind::reinstall);
  EXPECT_THAT(got.findings[0].fixes.at(0).title, HasSubstr("CUDA 12.8 or newer"));
  EXPECT_EQ(got.findings[0].fixes.at(0).caveat, "");
}

TEST_F(Analyze, ACompilersOtherRefusalsAreTheProgramsBusiness) {
  EXPECT_THAT(
      run(refused("nvrtc", 5, "NVRTC_ERROR_INVALID_OPTION", fmt::format(R"("asked":"sm_80",{})", kNvrtc13)))
          .findings,
      IsEmpty());
  EXPECT_THAT(run(refused("nvjitlink", 1, "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
                          R"("asked":"sm_90","compiler":"13.0")"))
                  .findings,
              IsEmpty());
}

}  // namespace
}  // namespace kshim::analysis
