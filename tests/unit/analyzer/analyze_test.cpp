// SPDX-License-Identifier: Apache-2.0
// Findings about images: from a report to cause, evidence and fixes.
#include <gmock/gmock.h>

#include <algorithm>

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

const Fix* fix_of(const Finding& finding, FixKind kind) {
  const auto found = std::find_if(finding.fixes.begin(), finding.fixes.end(),
                                  [&](const Fix& fix) { return fix.kind == kind; });
  return found == finding.fixes.end() ? nullptr : &*found;
}

TEST_F(Analyze, NoImageForArch) {
  const Analysis got = run(failing("12.0", {"sm_80", "sm_90"}));
  EXPECT_EQ(got.verdict, Verdict::gap);
  EXPECT_EQ(worst(got), Severity::error);
  ASSERT_THAT(got.findings, SizeIs(1));
  const Finding& finding = got.findings[0];
  EXPECT_EQ(finding.cause, Cause::no_image_for_arch);
  EXPECT_GT(finding.confidence, 0.9);
  EXPECT_EQ(finding.code, 209);
  EXPECT_EQ(finding.code_name, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_EQ(finding.object, "/home/u/libfoo.so");
  EXPECT_THAT(finding.kernels, ElementsAre("saxpy(int, float, float const*, float*)"));
  EXPECT_FALSE(finding.kernels_complete) << "the file is not there: there may be more";
  EXPECT_THAT(finding.have, ElementsAre("sm_80", "sm_90"));
  EXPECT_EQ(finding.need, "sm_120");
  ASSERT_THAT(finding.devices, SizeIs(1));
  EXPECT_EQ(text_of(finding.devices[0]), "GPU 0: NVIDIA Test (12.0)");
  ASSERT_THAT(finding.images, SizeIs(2));
  EXPECT_EQ(finding.images[0].reason, "runs on 8.x GPUs only");
  EXPECT_EQ(finding.failed_call, "cuLibraryGetKernel");
  ASSERT_FALSE(finding.evidence.empty());
  EXPECT_THAT(finding.evidence[0].text, HasSubstr("cuLibraryGetKernel returned 209"));
  EXPECT_THAT(finding.evidence[0].at.text(), HasSubstr("box.0.jsonl:6"));
  for (const Evidence& row : finding.evidence) EXPECT_THAT(row.at.text(), HasSubstr(".jsonl:")) << row.text;
  const Fix* rebuild = fix_of(finding, FixKind::rebuild);
  ASSERT_NE(rebuild, nullptr);
  EXPECT_THAT(rebuild->commands,
              Contains(HasSubstr("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 "
                                 "-gencode arch=compute_120,code=sm_120 "
                                 "-gencode arch=compute_120,code=compute_120 -o libfoo.so")));
  EXPECT_THAT(finding.fixes,
              Contains(Field(&Fix::commands,
                             ElementsAre(HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=\"80-real;90-real;120\"")))));
  EXPECT_THAT(finding.dead_ends, Contains(Field(&DeadEnd::action, "updating the driver")));
  EXPECT_THAT(finding.remarks, Contains("Your driver (580.82.07, for CUDA 13.0) is fine."));
  ASSERT_THAT(got.devices, SizeIs(1));
  EXPECT_EQ(got.devices[0].findings, 1U);
  ASSERT_THAT(got.processes, SizeIs(1));
  EXPECT_TRUE(got.processes[0].complete);
  EXPECT_EQ(got.processes[0].failures, 1U);
}

TEST_F(Analyze, NamesTheLastToolkitForAGpuThatWasDropped) {
  const Analysis got = run(failing("6.1", {"sm_75", "compute_75:9.0"}));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::ptx_newer_than_device);
  const Fix* fix = fix_of(got.findings[0], FixKind::downgrade);
  ASSERT_NE(fix, nullptr);
  EXPECT_THAT(fix->title, HasSubstr("CUDA 12.9"));
  EXPECT_THAT(fix->commands, Contains(HasSubstr("/usr/local/cuda-12.9/bin/nvcc")));
  for (const Fix& each : got.findings[0].fixes) {
    for (const std::string& command : each.commands) EXPECT_THAT(command, Not(HasSubstr("cuda-13")));
  }
  EXPECT_THAT(got.findings[0].dead_ends,
              Contains(Field(&DeadEnd::action, "building with a CUDA newer than 12.9")));
}

TEST_F(Analyze, WhichToolkitsCanIsSaidOfAllThatTheyBuild) {
  // sm_61 alone would be 8.0 to 12.9; sm_90 is from 11.8 on.
  const Analysis got = run(failing("6.1", {"sm_80", "sm_90"}));
  ASSERT_THAT(got.findings, SizeIs(1));
  const Fix* fix = fix_of(got.findings[0], FixKind::rebuild);
  ASSERT_NE(fix, nullptr);
  EXPECT_THAT(fix->why, HasSubstr("CUDA 11.8 to 12.9 can do it"));
}

TEST_F(Analyze, SaysNothingOfImagesThatAreNotKnown) {
  const Analysis got = run(failing("8.6", {}));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].dead_ends, Not(Contains(Field(&DeadEnd::why, HasSubstr("no PTX here fits")))));
}

TEST_F(Analyze, PtxMadeAtRunTimeIsMadeByAnOlderCompiler) {
  ReportText text;
  text.process().driver("12.4").device(0, "8.6").module(1, "null", 222);
  text.failure(1, "load", 222, "", R"("module":1,"object":null)", "cuModuleLoadData");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].fixes.at(0).kind, FixKind::downgrade);
  EXPECT_THAT(got.findings[0].fixes.at(0).title, HasSubstr("CUDA 12.4"));
}

// Damaged, or by a compiler that is too new for the driver: nobody knows.
TEST_F(Analyze, ImageThatCannotBeReadSaysNothingForTheDriver) {
  ReportText text;
  text.process().driver("12.4").device(0, "8.6").module(1, "null", 200);
  text.failure(1, "load", 200, "", R"("module":1,"object":null)", "cuModuleLoadData");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::invalid_image);
  EXPECT_THAT(got.findings[0].remarks, Not(Contains(HasSubstr("is fine"))));
}

// The launch that returns it is another one, unless each launch waits for its kernel.
TEST_F(Analyze, ACrashThatALaterLaunchTellsNamesNoKernel) {
  const auto told = [this](std::string_view env) { return run(failing("9.0", {"sm_90"}, 700, env)); };
  for (const std::string_view env : {"", R"("CUDA_LAUNCH_BLOCKING":"0")"}) {
    const Analysis got = told(env);
    ASSERT_THAT(got.findings, SizeIs(1));
    EXPECT_EQ(got.findings[0].cause, Cause::device_fault);
    EXPECT_EQ(got.findings[0].failed_kernel, "");
    EXPECT_EQ(got.findings[0].object, "");
  }
  const Analysis got = told(R"("CUDA_LAUNCH_BLOCKING":"1")");
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_NE(got.findings[0].failed_kernel, "");
}

TEST_F(Analyze, ArchSpecificImage) {
  const Analysis got = run(failing("10.0", {"sm_90a"}));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::arch_specific_image);
}

TEST_F(Analyze, PtxNewerThanDriverOffersDriverAndRebuild) {
  const Analysis got = run(failing("9.0", {"sm_80", "compute_80:9.0"}, 222, "", "12.4"));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::ptx_newer_than_driver);
  const Fix* driver = fix_of(got.findings[0], FixKind::upgrade_driver);
  ASSERT_NE(driver, nullptr);
  EXPECT_THAT(driver->title, HasSubstr("580.65.06"));
  EXPECT_THAT(got.findings[0].remarks, Not(Contains(HasSubstr("is fine"))));
}

TEST_F(Analyze, NeverSendsAPascalOwnerToADriverThatDroppedPascal) {
  const Analysis got = run(failing("6.1", {"compute_60:9.1"}, 222, "", "12.4"));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::ptx_newer_than_driver);
  EXPECT_EQ(fix_of(got.findings[0], FixKind::upgrade_driver), nullptr);
  EXPECT_THAT(got.findings[0].dead_ends,
              Contains(Field(&DeadEnd::why, HasSubstr("R580 is the last driver branch"))));
}

TEST_F(Analyze, SwitchesAreNamedAndUnset) {
  Analysis got = run(failing("8.6", {"sm_86"}, 209, R"("CUDA_FORCE_PTX_JIT":"1")"));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::sass_bypassed);
  EXPECT_THAT(got.findings[0].fixes.at(0).commands, ElementsAre("unset CUDA_FORCE_PTX_JIT"));
  EXPECT_THAT(got.findings[0].evidence,
              Contains(Field(&Evidence::text, "CUDA_FORCE_PTX_JIT=1 is in the environment.")));
  got = run(failing("9.0", {"compute_80:8.0"}, 223, R"("CUDA_DISABLE_PTX_JIT":"1")"));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::ptx_jit_disabled);
  EXPECT_EQ(got.findings[0].fixes.at(0).kind, FixKind::environment);
  got = run(failing("8.6", {"sm_80"}, 209, R"("CUDA_FORCE_PTX_JIT":"0")"));
  EXPECT_NE(got.findings.at(0).cause, Cause::sass_bypassed) << "0 is off";
}

TEST_F(Analyze, OneOfTwoGpusFailsAndTheOtherIsOffered) {
  ReportText text;
  text.process().driver().device(0, "8.6", "A", "GPU-aa").device(1, "7.5", "B", "GPU-bb");
  text.object(1, "/home/u/libfoo.so", {"sm_86"}).module(1, "1");
  text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)", "cuLaunchKernel", 1).end();
  const Analysis got = run(text);
  ASSERT_THAT(got.findings, SizeIs(1));
  ASSERT_THAT(got.findings[0].devices, SizeIs(1));
  EXPECT_EQ(text_of(got.findings[0].devices[0]), "GPU 1: B (7.5)");
  EXPECT_EQ(got.devices.at(0).findings, 0U);
  EXPECT_EQ(got.devices.at(1).findings, 1U);
  const Fix* hide = fix_of(got.findings[0], FixKind::environment);
  ASSERT_NE(hide, nullptr);
  EXPECT_THAT(hide->commands, ElementsAre("CUDA_VISIBLE_DEVICES=GPU-aa /home/u/train"));
}

TEST_F(Analyze, ALooseImageIsJudgedByItsGap) {
  ReportText text;
  text.process().driver().device(0, "8.6").module(1, "null", 209);
  text.failure(1, "load", 209, "", R"("module":1,"object":null)", "cuModuleLoadData");
  text.record(
      "gap",
      R"("object":null,"offset":null,"device":0,"kernels":[],"complete":false,"have":["sm_90"],"need":"sm_86")");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::no_image_for_arch);
  EXPECT_EQ(got.findings[0].object, "");
  EXPECT_THAT(got.findings[0].have, ElementsAre("sm_90"));
  EXPECT_THAT(got.findings[0].fixes.at(0).commands, ::testing::IsEmpty());
  EXPECT_THAT(got.findings[0].fixes.at(0).title, HasSubstr("sm_86"));
  EXPECT_THAT(got.findings[0].fixes.at(0).why, HasSubstr("--gpu-architecture=sm_86"));
}

TEST_F(Analyze, AFileThatIsNotThereIsSaidNotToBeThere) {
  ReportText text;
  text.process().driver().device(0, "8.6").failure(1, "load", 301, "", "", "cuModuleLoad");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].headline, HasSubstr("not found"));
  ASSERT_THAT(got.findings[0].fixes, SizeIs(1)) << "recording more would not tell more";
  EXPECT_EQ(got.findings[0].fixes[0].kind, FixKind::code);
}

TEST_F(Analyze, GapsForATargetAreWarningsUntilTheyAreHit) {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"sm_86"}).module(1, "1");
  text.record(
      "gap",
      R"("object":1,"offset":64,"device":null,"kernels":["_Z1kv"],"complete":true,"have":["sm_86"],"need":"sm_120")");
  const Analysis got = run(text.end(0));
  EXPECT_EQ(got.verdict, Verdict::gap);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::latent_gap);
  EXPECT_EQ(got.findings[0].severity, Severity::warning);
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("k()"));
  ASSERT_THAT(got.findings[0].devices, SizeIs(1));
  EXPECT_EQ(text_of(got.findings[0].devices[0]), "target sm_120");
  EXPECT_EQ(got.findings[0].need, "sm_120");
}

TEST_F(Analyze, GapsForAPresentGpuAreInformationUntilTheyAreHit) {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"sm_90"});
  text.record(
      "gap",
      R"("object":1,"offset":64,"device":0,"kernels":["_Z1kv"],"complete":true,"have":["sm_90"],"need":"sm_86")");
  const Analysis got = run(text.end(0));
  EXPECT_EQ(got.verdict, Verdict::idle);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].severity, Severity::info);
}

TEST_F(Analyze, AGapThatAFailureNamesIsNotToldTwice) {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {}).module(1, "1");
  text.failure(1, "lookup", 209, "_Z1av", R"("module":1,"object":1)");
  text.record(
      "gap",
      R"("object":1,"offset":4096,"device":0,"kernels":["_Z1av","_Z1bv"],"complete":true,"have":["sm_90"],"need":"sm_86")");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::no_image_for_arch);
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("a()", "b()"));
  EXPECT_TRUE(got.findings[0].kernels_complete);
}

TEST_F(Analyze, AssumptionsReplaceWhatWasRecorded) {
  options_.assume_cc = image::ComputeCapability{8, 6};
  EXPECT_EQ(run(failing("12.0", {"sm_80", "sm_90"})).verdict, Verdict::ok) << "8.6 would run sm_80";
  options_.assume_cc = image::ComputeCapability{7, 5};
  Analysis got = run(failing("12.0", {"sm_80", "sm_90"}));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].need, "sm_75");
  EXPECT_THAT(got.notes, Contains(HasSubstr("as if the GPU were of compute capability 7.5")));
  options_ = {};
  options_.assume_driver = image::Version{12, 4};
  got = run(failing("9.0", {"compute_80:9.0"}));
  EXPECT_EQ(got.findings.at(0).cause, Cause::ptx_newer_than_driver);
  options_ = {};
  options_.assume_toolkit = image::Version{13, 0};
  got = run(failing("6.1", {"sm_75"}));
  EXPECT_NE(fix_of(got.findings.at(0), FixKind::downgrade), nullptr);
}

TEST_F(Analyze, WhereIsTheUsersOwnFrame) {
  ReportText text;
  text.process("", 17, 1, "/home/u/venv/bin/python3")
      .driver()
      .device(0, "6.1")
      .object(1, "/home/u/libfoo.so", {"sm_75"});
  text.module(1, "1").failure(
      1, "launch", 209, kSaxpy,
      R"("module":1,"object":1,"native":[{"object":"/home/u/libfoo.so","build_id":null,"offset":7}],)"
      R"("python":[{"file":"/v/lib/python3.11/site-packages/torch/nn/functional.py","line":1,"function":"f"},)"
      R"({"file":"/home/u/train.py","line":42,"function":"step"},{"file":"/home/u/train.py","line":7,)"
      R"("function":"<module>"}],"python_main":null)");
  const Analysis got = run(text.end());
  ASSERT_FALSE(got.findings.at(0).where.empty());
  EXPECT_EQ(got.findings[0].where[0].file, "/home/u/train.py");
  EXPECT_EQ(got.findings[0].where[0].line, 42U);
  EXPECT_TRUE(got.findings[0].where[0].python);
  EXPECT_THAT(got.findings[0].dead_ends,
              Contains(Field(&DeadEnd::action, HasSubstr("TORCH_CUDA_ARCH_LIST"))));
}

TEST_F(Analyze, PythonWithoutTorchIsToldNothingOfTorch) {
  ReportText text;
  text.process("", 17, 1, "/usr/bin/python3")
      .driver()
      .device(0, "6.1")
      .object(1, "/home/u/libfoo.so", {"sm_75"});
  text.module(1, "1").failure(1, "launch", 209, kSaxpy, R"("module":1,"object":1)");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].dead_ends,
              Not(Contains(Field(&DeadEnd::action, HasSubstr("TORCH_CUDA_ARCH_LIST")))));
}

TEST_F(Analyze, APackagesExtensionIsRebuiltByPip) {
  ReportText text;
  text.process()
      .driver()
      .device(0, "8.6")
      .object(1, "/v/lib/python3.11/site-packages/foo/_C.so", {"sm_90"})
      .module(1, "1");
  text.record("package", R"("object":1,"name":"foo","version":"1.2","manager":"pip")");
  text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
  ReportText with_torch = text;
  const Analysis alone = run(text.end());
  EXPECT_EQ(alone.findings.at(0).package.text(), "foo 1.2 (pip)");
  // Whether anybody has its source is not known.
  EXPECT_EQ(alone.findings[0].fixes.at(0).id, "take-release-with-code");
  EXPECT_THAT(alone.findings[0].fixes.at(1).commands.at(0), HasSubstr("NVCC_APPEND_FLAGS=\"-gencode"));
  EXPECT_THAT(alone.findings[0].fixes[1].commands[0], Not(HasSubstr("foo"))) << "the report alone names it";
  with_torch.object(2, "/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", {"sm_86"});
  const Analysis got = run(with_torch.end());
  EXPECT_THAT(got.findings.at(0).fixes.at(0).commands.at(0),
              HasSubstr("TORCH_CUDA_ARCH_LIST=\"8.6+PTX\" FORCE_CUDA=1 pip install"));
}

TEST_F(Analyze, ATargetsGapSaysNothingOfThePresentGpu) {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {}).module(1, "1");
  const auto gap = [&](const char* device, const char* kernels, const char* need) {
    text.record(
        "gap",
        fmt::format(R"("object":1,"offset":4096,"device":{},"kernels":[{}],"complete":true,"have":["sm_90"],)"
                    R"("need":"{}")",
                    device, kernels, need));
  };
  gap("0", R"("_Z1av")", "sm_86");
  gap("null", R"("_Z1av","_Z1bv")", "sm_75");
  // The shim does not know the device: the one GPU it is, not the target.
  text.record(
      "failure",
      R"("id":1,"stage":"lookup","layers":[{"layer":"driver","api":"cuLibraryGetKernel","code":209}],)"
      R"("device":null,"kernel":"_Z1av","object":1)");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(2));
  EXPECT_EQ(got.findings[0].cause, Cause::no_image_for_arch);
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("a()"));
  EXPECT_EQ(got.findings[1].cause, Cause::latent_gap);
  EXPECT_THAT(got.findings[1].kernels, ElementsAre("a()", "b()"));
}

TEST_F(Analyze, NvidiasOwnLibrariesAreNotRebuilt) {
  ReportText text;
  text.process().driver().device(0, "6.1").object(1, "/usr/local/cuda-13.0/lib64/libcublas.so.13",
                                                  {"sm_75", "sm_80"});
  text.module(1, "1").failure(1, "launch", 209, kSaxpy, R"("module":1,"object":1)");
  const Analysis got = run(text.end());
  EXPECT_EQ(fix_of(got.findings.at(0), FixKind::rebuild), nullptr);
  const Fix* fix = fix_of(got.findings[0], FixKind::reinstall);
  ASSERT_NE(fix, nullptr);
  EXPECT_THAT(fix->why, HasSubstr("CUDA 8.0 to 12.9"));
}

}  // namespace
}  // namespace kshim::test
