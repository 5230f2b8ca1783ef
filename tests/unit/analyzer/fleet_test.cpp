// SPDX-License-Identifier: Apache-2.0
// The smallest list of architectures for a set of GPUs, and questions that gone files leave without an
// answer.
#include <gmock/gmock.h>

#include <algorithm>

#include "analyze_fixture.h"
#include "analyzer/render/sentences.h"
#include "kshim/image/select.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ComputeCapability;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<ComputeCapability> gpus_of(const std::vector<unsigned>& numbers) {
  std::vector<ComputeCapability> out;
  for (const unsigned number : numbers) out.push_back(ComputeCapability::from_number(number));
  return out;
}

ImageCount row(const char* name, std::uint64_t bytes = 0, std::uint64_t count = 1) {
  const std::string_view text = name;
  const image::ImageKind kind = text.starts_with("sm_") ? image::ImageKind::cubin : image::ImageKind::ptx;
  return {{kind, *image::parse_arch(text), {}}, count, bytes};
}

FleetPlan plan(const std::vector<unsigned>& fleet, const std::vector<ImageCount>& images,
               const std::vector<unsigned>& lacking = {}) {
  const auto out = plan_fleet({gpus_of(fleet), gpus_of(lacking), images});
  EXPECT_TRUE(out.has_value());
  return out.value_or(FleetPlan{});
}

TEST(Fleet, OneArchitectureServesTheLaterOnesOfItsMajor) {
  const FleetPlan got = plan({70, 75, 86, 89, 90, 120}, {row("sm_80")});
  EXPECT_EQ(list_text(got.smallest), "sm_70 (for 7.0, 7.5) sm_80 (for 8.6, 8.9) sm_90 sm_120")
      << "it has sm_80 already";
  EXPECT_EQ(got.ptx.cc.number(), 120U);
  EXPECT_EQ(got.lacking, gpus_of({70, 75, 90, 120}));
  EXPECT_EQ(toolkits_text(got), "CUDA 12.8 or 12.9 builds all of it");
  EXPECT_EQ(cmake_text(got), "70-real;80-real;90-real;120");
}

TEST(Fleet, TheClosestIsTakenWhereTheFileHasNone) {
  EXPECT_EQ(list_text(plan({86, 89}, {row("sm_75")}).smallest), "sm_86 (for 8.6, 8.9)");
}

TEST(Fleet, TegraPartsHaveTheirOwn) {
  const FleetPlan got = plan({80, 86, 87}, {row("sm_75")});
  EXPECT_EQ(list_text(got.smallest), "sm_80 (for 8.0, 8.6) sm_87");
  EXPECT_EQ(got.ptx.cc.number(), 80U) << "PTX of a Jetson's target is nobody's choice";
}

TEST(Fleet, KeepsArchitectureSpecificImagesInUse) {
  const FleetPlan got = plan({80, 90, 120}, {row("sm_80"), row("sm_90"), row("sm_90a")});
  EXPECT_EQ(list_text(got.smallest), "sm_80 sm_90a sm_120") << "sm_90a runs on 9.0";
  EXPECT_THAT(got.smallest.archs,
              ElementsAre(Field(&FleetArch::added, false), Field(&FleetArch::added, false),
                          Field(&FleetArch::added, true)));
  // Some module lacks code for 9.0: then the one for it alone is not enough.
  const FleetPlan part = plan({80, 90}, {row("sm_80"), row("sm_90a")}, {90});
  EXPECT_EQ(list_text(part.smallest), "sm_80 sm_90 sm_90a");
  // Of no use to this fleet.
  EXPECT_EQ(list_text(plan({80, 120}, {row("sm_80"), row("sm_90a")}).smallest), "sm_80 sm_120");
}

TEST(Fleet, NoSingleToolkitIsNamed) {
  const FleetPlan got = plan({35, 120}, {row("sm_35")});
  EXPECT_EQ(got.compiled, gpus_of({120}));
  EXPECT_THAT(got.unserved, IsEmpty());
  const std::string text = toolkits_text(got);
  EXPECT_THAT(text, HasSubstr("no single toolkit builds for all of them"));
  EXPECT_THAT(text, HasSubstr("CUDA 12.8 is the first for 12.0"));
  EXPECT_THAT(text, HasSubstr("CUDA 11.8 is the last for 3.5"));
  EXPECT_THAT(text, HasSubstr("12.0 compiles its PTX at load"));
}

TEST(Fleet, FileWithFullCoverageHasNoPlan) {
  EXPECT_FALSE(plan_fleet({gpus_of({80, 86}), {}, {row("sm_80")}}).has_value());
  EXPECT_FALSE(plan_fleet({gpus_of({90}), {}, {row("compute_75")}}).has_value()) << "PTX serves it";
  EXPECT_FALSE(plan_fleet({gpus_of({80}), gpus_of({61}), {row("sm_80")}}).has_value())
      << "6.1 is not of the fleet";
}

// By the rules themselves: every list serves every GPU, and none of its entries can be left out.
TEST(Fleet, EveryListCoversAllGpusAndIsMinimal) {
  std::vector<unsigned> all;
  for (const GpuRow& gpu : toolkits().empty() ? std::span<const GpuRow>() : gpus())
    all.push_back(gpu.cc.number());
  const std::size_t count = all.size();
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      for (std::size_t c = b + 1; c < count; ++c) {
        const auto got = plan_fleet({gpus_of({all[a], all[b], all[c]}), {}, {}});
        if (!got) continue;  // no image is known: nothing is known to lack
        FAIL() << "without images nothing lacks";
      }
    }
  }
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      const std::vector<unsigned> pair = {all[a], all[b]};
      const FleetPlan got = *plan_fleet({gpus_of(pair), gpus_of(pair), {}});
      const auto served = [&](ComputeCapability gpu, const FleetArch* without) {
        for (const FleetArch& each : got.smallest.archs) {
          if (&each != without && image::judge({image::ImageKind::cubin, each.arch, {}}, {gpu, {}, {}}).fits)
            return true;
        }
        return false;
      };
      for (const ComputeCapability gpu : gpus_of(pair)) {
        const bool told = std::find(got.compiled.begin(), got.compiled.end(), gpu) != got.compiled.end() ||
                          std::find(got.unserved.begin(), got.unserved.end(), gpu) != got.unserved.end();
        EXPECT_NE(served(gpu, nullptr), told) << pair[0] << " " << pair[1] << ": " << gpu.number();
      }
      for (const FleetArch& each : got.smallest.archs) {
        bool needed = false;
        for (const ComputeCapability gpu : gpus_of(pair))
          needed = needed || (served(gpu, nullptr) && !served(gpu, &each));
        EXPECT_TRUE(needed) << pair[0] << " " << pair[1] << ": " << each.arch.cc.number();
      }
    }
  }
}

class AnalyzeFleet : public Analyze {};

TEST_F(AnalyzeFleet, KindsOfGpusInTheReportsAreAFleet) {
  std::vector<ReportText> reports;
  for (unsigned host = 0; host < 3; ++host) {
    ReportText text;
    text.process("", 17, 1, "/home/u/train", fmt::format("node{}", host)).driver();
    text.device(0, host == 2 ? "7.5" : "8.6", host == 2 ? "Tesla T4" : "A40")
        .object(1, "/home/u/libfoo.so", {"sm_80"});
    text.module(1, "1");
    if (host == 2) text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
    reports.push_back(text.end(host == 2 ? 1 : 0));
  }
  const Analysis got = run_all(reports);
  ASSERT_THAT(got.fleet, SizeIs(1));
  EXPECT_EQ(got.fleet[0].object, "/home/u/libfoo.so");
  EXPECT_EQ(list_text(got.fleet[0].smallest), "sm_75 sm_80 (for 8.6)");
  EXPECT_EQ(breaks_text(got.fleet[0]), "node2 (Tesla T4, 7.5)");
}

TEST_F(AnalyzeFleet, TargetsAreTheFleet) {
  options_.targets = {*image::parse_arch("9.0"), *image::parse_arch("12.0")};
  const Analysis got = run(failing("6.1", {"sm_75", "sm_90"}));
  ASSERT_THAT(got.fleet, SizeIs(1));
  EXPECT_EQ(got.fleet[0].lacking, gpus_of({120}));
  EXPECT_EQ(list_text(got.fleet[0].smallest), "sm_90 sm_120");
}

TEST_F(AnalyzeFleet, NvidiasOwnLibrariesAreNotRebuilt) {
  options_.targets = {*image::parse_arch("12.0")};
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/usr/lib/libcurand.so.10", {"sm_80"}).module(1, "1");
  const Analysis got = run(text.end(0));
  EXPECT_THAT(got.findings, Not(IsEmpty()));
  EXPECT_THAT(got.fleet, IsEmpty());
}

TEST_F(AnalyzeFleet, ATargetThatGoneFilesCannotAnswerIsNotOk) {
  options_.targets = {*image::parse_arch("9.0")};
  ReportText text;
  text.process()
      .driver()
      .device(0, "8.6")
      .object(1, "/nowhere/libfoo.so", {})
      .object(2, "/nowhere/libbar.so", {});
  text.module(1, "1").module(2, "2").end(0);
  const Analysis got = run(text);
  EXPECT_EQ(got.verdict, Verdict::incomplete);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::unknown);
  EXPECT_EQ(got.findings[0].severity, Severity::warning);
  EXPECT_EQ(got.findings[0].need, "sm_90");
  EXPECT_THAT(got.findings[0].headline, HasSubstr("cannot tell whether this runs on sm_90"));
  EXPECT_THAT(got.findings[0].evidence, SizeIs(2));
  EXPECT_THAT(got.findings[0].fixes.at(0).commands,
              ElementsAre("kshim scan --target sm_90 /nowhere/libfoo.so /nowhere/libbar.so"));
}

TEST_F(AnalyzeFleet, AnotherRanksReportAnswersForAGoneFile) {
  options_.targets = {*image::parse_arch("9.0")};
  std::vector<ReportText> reports;
  for (unsigned rank = 0; rank < 3; ++rank) {
    ReportText text;
    text.process("", 17, 1 + rank)
        .driver()
        .device(0, "6.1")
        .object(1, "/nowhere/libfoo.so", {})
        .module(1, "1");
    if (rank == 1)
      text.record(
          "gap",
          R"("object":1,"offset":4096,"device":0,"kernels":["k"],"complete":true,"have":["sm_75"],"need":"sm_61")");
    reports.push_back(text.end(0));
  }
  for (const Finding& finding : run_all(reports).findings)
    EXPECT_NE(finding.cause, Cause::unknown) << finding.headline;
  reports.erase(reports.begin() + 1);
  EXPECT_THAT(run_all(reports).findings, Contains(Field(&Finding::cause, Cause::unknown)));
}

TEST_F(AnalyzeFleet, AListInTheReportAnswersForAGoneFile) {
  options_.targets = {*image::parse_arch("9.0"), *image::parse_arch("8.9")};
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/nowhere/libfoo.so", {"sm_80"}).module(1, "1").end(0);
  const Analysis got = run(text);
  EXPECT_EQ(got.verdict, Verdict::gap);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::latent_gap);
  EXPECT_EQ(got.findings[0].need, "sm_90");
}

TEST_F(AnalyzeFleet, AGapOfAPresentGpuTellsWhatAGoneModuleHas) {
  options_.targets = {*image::parse_arch("9.0")};
  ReportText text;
  text.process().driver().device(0, "6.1").object(1, "/nowhere/libfoo.so", {}).module(1, "1");
  text.record(
      "gap",
      R"("object":1,"offset":4096,"device":0,"kernels":["k"],"complete":true,"have":["sm_75"],"need":"sm_61")");
  const Analysis got = run(text.end(0));
  EXPECT_THAT(got.findings, Contains(Field(&Finding::need, "sm_90")));
  EXPECT_THAT(got.findings, Not(Contains(Field(&Finding::cause, Cause::unknown))));
}

TEST_F(AnalyzeFleet, ATargetOfTheProcessIsJudgedLikeOneOfTheCommand) {
  ReportText text;
  text.process(R"("KSHIM_TARGET":"8.9;sm_90")").driver().device(0, "6.1").object(1, "/nowhere/libfoo.so", {});
  text.module(1, "1").record(
      "gap",
      R"("object":1,"offset":4096,"device":0,"kernels":["k"],"complete":true,"have":["sm_75"],"need":"sm_61")");
  const Analysis got = run(text.end(0));
  for (const char* need : {"sm_89", "sm_90"})
    EXPECT_THAT(got.findings,
                Contains(AllOf(Field(&Finding::cause, Cause::latent_gap), Field(&Finding::need, need))));
}

}  // namespace
}  // namespace kshim::test
