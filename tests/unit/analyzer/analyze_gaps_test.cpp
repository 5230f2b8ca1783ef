// SPDX-License-Identifier: Apache-2.0
// Reports that leave something out because it is there already, or would be too much: what is said is the
// same.
#include <gmock/gmock.h>

#include "analyze_fixture.h"

namespace kshim::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string gap(std::string_view kernels, std::string_view total, bool complete, unsigned device = 0) {
  return fmt::format(R"("object":1,"offset":4096,"device":{},"kernels":[{}],"total":{},"complete":{},)"
                     R"("have":["sm_90"],"need":"sm_86")",
                     device, kernels, total, complete);
}

ReportText loaded() {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/gone/libfoo.so", {}).module(1, "1");
  return text;
}

TEST_F(Analyze, KernelsThatAGapCountsAndDoesNotNameAreCounted) {
  ReportText text = loaded();
  text.record("gap", gap(R"("_Z1av","_Z1bv")", "300", false));
  text.failure(1, "lookup", 209, "_Z1cv", R"("module":1,"object":1)");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("c()", "a()", "b()"));
  EXPECT_EQ(got.findings[0].kernels_total, 300U);
  EXPECT_FALSE(got.findings[0].kernels_complete);
}

TEST_F(Analyze, ANumberSmallerThanWhatIsNamedIsNone) {
  ReportText text = loaded();
  text.record("gap", gap(R"("_Z1av","_Z1bv")", "1", false));
  text.failure(1, "lookup", 209, "_Z1cv", R"("module":1,"object":1)");
  EXPECT_EQ(run(text.end()).findings.at(0).kernels_total, 3U);
}

TEST_F(Analyze, TheGapThatNamesMostOfAModulesKernelsCounts) {
  ReportText text = loaded();
  text.record("gap", gap(R"("_Z1av")", "3", false));
  text.failure(1, "load", 209, "", R"("module":1,"object":1)", "cuLibraryLoadData");
  text.record("gap", gap(R"("_Z1dv","_Z1ev","_Z1fv","_Z1gv")", "4", true, 1));  // another GPU's
  text.record("driver", R"("path":null,"cuda_version":"13.0","kernel_module":null,"simulated":false)");
  text.record("gap", gap(R"("_Z1av","_Z1bv","_Z1cv")", "3", true));
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("a()", "b()", "c()"));
  EXPECT_EQ(got.findings[0].kernels_total, 3U);
  EXPECT_TRUE(got.findings[0].kernels_complete);
}

// Whose probing a failed load is, its stack tells.
TEST_F(Analyze, AProbeWithAnothersFramesIsAProbe) {
  const auto probes = [](std::string_view second) {
    ReportText text;
    text.process().driver().device(0, "8.6");
    text.object(1, "/usr/lib/libcusparseLt.so.0", {"sm_90"}).module(1, "1", 209).module(2, "null", 209);
    const std::string frames = R"("native":[{"object":"/usr/lib/libcusparseLt.so.0","offset":64}])";
    text.failure(1, "load", 209, "", R"("module":1,"object":1,)" + frames, "cuModuleLoadData");
    text.failure(2, "load", 209, "", R"("module":2,)" + (second.empty() ? frames : std::string(second)),
                 "cuModuleLoadData");
    return text.end(2);
  };
  const auto causes = [this, &probes](std::string_view second) {
    std::vector<Cause> out;
    for (const Finding& finding : run(probes(second)).findings) out.push_back(finding.cause);
    return out;
  };
  const std::vector<Cause> with = causes({});
  EXPECT_THAT(with, ElementsAre(Cause::benign_probe, Cause::benign_probe)) << "one of no file";
  EXPECT_EQ(causes(R"("native":null,"native_of":1)"), with);
  EXPECT_NE(causes(R"("native":null,"native_of":9)"), with);
  EXPECT_THAT(run(probes(R"("native":null,"native_of":9)")).notes,
              Contains(HasSubstr("failure 9, which is not there")));
}

// Nearly every program of nvcc has a fatbin without kernels: for a target, it lacks nothing.
TEST_F(Analyze, AModuleWithoutKernelsLacksNothing) {
  ReportText text;
  text.process().driver().device(0, "7.5").object(1, "/gone/plain", {}).module(1, "1");
  text.record("gap", R"("object":1,"offset":8,"device":null,"kernels":[],"total":0,"complete":true,)"
                     R"("have":["sm_75"],"need":"sm_120")");
  EXPECT_THAT(run(text.end()).findings, SizeIs(0));
}

TEST_F(Analyze, WhatIsGivenBackWhileAProcessEndsWellIsNoFinding) {
  const auto ended = [this](std::string_view call, int code, std::optional<int> status) {
    ReportText text;
    text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"sm_86"}).module(1, "1");
    text.failure(1, "other", code, "", R"("module":1,"object":1)", call);
    seen_.ending.status = status;
    return run(text.end()).findings.size();
  };
  EXPECT_EQ(ended("cuModuleUnload", 4, 0), 0U);
  EXPECT_EQ(ended("cuLibraryUnload", 709, 0), 0U);
  EXPECT_EQ(ended("cuModuleUnload", 201, std::nullopt), 0U) << "its report has an end";
  EXPECT_NE(ended("cuModuleUnload", 4, 1), 0U) << "it did not end well";
  EXPECT_NE(ended("cuLaunchKernel", 709, 0), 0U) << "that is its work";
  EXPECT_NE(ended("cuMemFree_v2", 700, 0), 0U) << "a kernel crashed before it";
}

// A reset ends the context that the first allocation of a runtime before 12 finds; it asks again with
// another.
TEST_F(Analyze, AnAllocationThatIsAskedAgainIsNoFailure) {
  const auto ended = [this](std::string_view call, int code, int status) {
    ReportText text;
    text.process().driver().device(0, "9.0").object(1, "/home/u/libfoo.so", {"sm_90"}).module(1, "1");
    text.failure(1, "other", code, "", R"("module":null,"object":null)", call);
    seen_.ending.status = status;
    return run(text.end()).findings.size();
  };
  EXPECT_EQ(ended("cuMemAllocAsync", 201, 0), 0U);
  EXPECT_EQ(ended("cuMemAllocAsync", 709, 0), 0U);
  EXPECT_NE(ended("cuMemAllocAsync", 709, 1), 0U);
  EXPECT_NE(ended("cuMemAlloc_v2", 709, 0), 0U);
}

// A runtime before 12 that is linked in loads all modules at its start, and only it knows which launch
// failed.
TEST_F(Analyze, WhatAnOldLinkedRuntimeKeepsToItselfIsNoFailure) {
  const auto failures = [this](std::string_view api, int status, int other) {
    constexpr unsigned kMany = 8;
    ReportText text;
    text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"sm_35", "sm_50"});
    text.module(100, "1", other);
    for (unsigned id = 1; id <= kMany; ++id) {
      text.module(id, "1", 209);
      text.failure(id, "load", 209, "", fmt::format(R"("module":{},"object":1)", id), api);
    }
    seen_.ending.status = status;
    const Analysis got = run(text.end(kMany));
    for (const Finding& each : got.findings)
      for (const Evidence& row : each.evidence) EXPECT_FALSE(core::contains(row.text, api));
    return worst(got) == Severity::error;
  };
  constexpr std::string_view kSlot = "CUDART_INTERFACE slot 6";
  EXPECT_FALSE(failures(kSlot, 0, 0));
  EXPECT_TRUE(failures(kSlot, 1, 0)) << "it did not end well";
  EXPECT_TRUE(failures(kSlot, 0, 209)) << "none of its modules was loaded";
}

}  // namespace
}  // namespace kshim::test
