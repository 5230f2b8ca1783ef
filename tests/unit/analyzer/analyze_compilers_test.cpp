// SPDX-License-Identifier: Apache-2.0
// Findings about compiler libraries in the process.
#include <gmock/gmock.h>

#include "analyze_fixture.h"

namespace kshim::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
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

// No file is at fault: the package that brought the runtime is to bring another.
TEST_F(Analyze, ADriverThatIsTooOldForAPackagesRuntime) {
  ReportText text;
  text.process("", 17, 1, "/v/bin/python3").driver("12.8", "570.86.10");
  text.record(
      "failure",
      R"("id":1,"stage":"init","layers":[{"layer":"runtime","api":"cudaGetDeviceCount","code":35,"name":null}],)"
      R"("device":null,"kernel":null,"module":null,"object":null,"tid":17,"native":[)"
      R"({"object":"/v/nvidia/cu13/lib/libcudart.so.13","build_id":"cd","offset":1,"symbol":null},)"
      R"({"object":"/v/torch/lib/libc10_cuda.so","build_id":"ab12","offset":1,"symbol":null}])");
  text.record(
      "library",
      R"("soname":"libcudart.so.13","path":"/v/nvidia/cu13/lib/libcudart.so.13","version":"13","build_id":"cd")");
  text.object(4, "/v/nvidia/cu13/lib/libcudart.so.13", {}).object(5, "/v/torch/lib/libc10_cuda.so", {}).end();
  text.record("package", R"("object":4,"name":"nvidia-cuda-runtime","version":"13.2.1","manager":"pip")");
  text.record("package", R"("object":5,"name":"torch","version":"2.15.0","manager":"pip")");
  const Analysis got = run(text);
  ASSERT_THAT(got.findings, SizeIs(1));
  const Finding& finding = got.findings[0];
  EXPECT_EQ(finding.cause, Cause::driver_too_old);
  EXPECT_EQ(finding.package.text(), "torch 2.15.0 (pip)");
  ASSERT_THAT(finding.fixes, Not(IsEmpty()));
  EXPECT_EQ(finding.fixes[0].title, "Install PyTorch 2.15.0 for CUDA 12.6, which this driver runs");
  EXPECT_THAT(finding.fixes[0].commands, Contains(HasSubstr("'torch==2.15.0'")));
  EXPECT_THAT(finding.fixes[0].caveat, HasSubstr("compute capability 5.0 to 9.x"));
}

}  // namespace
}  // namespace kshim::test
