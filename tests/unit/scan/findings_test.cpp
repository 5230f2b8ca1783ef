// SPDX-License-Identifier: Apache-2.0
// Findings of several GPUs and of many loose images: what is one to a reader is one, and loses nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/verbs/fleet_plans.h"
#include "analyzer/verbs/scan_parts.h"
#include "target_arch.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Finding finding(std::string object, std::string_view target, std::vector<std::string> have,
                Cause cause = Cause::no_image_for_arch, Severity severity = Severity::error) {
  Finding out;
  out.cause = cause;
  out.severity = severity;
  out.object = std::move(object);
  out.need = target;
  out.devices = {target_device(arch(target).cc)};
  for (const std::string& name : have) {
    ImageVerdict image;
    image.kind = "cubin";
    image.arch = name;
    image.count = 1;
    image.candidate = {image::ImageKind::cubin, arch(name), {}};
    out.images.push_back(std::move(image));
  }
  out.have = std::move(have);
  out.evidence.push_back({EvidenceId::rule, "why not on " + out.need, {out.object}});
  return out;
}

/// A file that has SASS, by architecture, and runs on `runs` of the targets.
ScannedObject object(std::string path, std::vector<std::string> has, std::vector<std::string> targets,
                     std::vector<std::string> runs = {}, std::string package = {}) {
  ScannedObject out;
  out.path = std::move(path);
  out.package.name = std::move(package);
  for (const std::string& name : has) {
    ImageCount row;
    row.candidate = {image::ImageKind::cubin, arch(name), {}};
    row.count = 1;
    out.images.push_back(row);
  }
  for (const std::string& name : targets) {
    const bool here = std::find(runs.begin(), runs.end(), name) != runs.end();
    TargetVerdict verdict;
    verdict.target = arch(name);
    verdict.sass = here ? 1 : 0;
    verdict.lacking = here ? 3 : 4;
    out.targets.push_back(verdict);
  }
  return out;
}

Scan merged(Scan scan) {
  merge_gpus_of_files(scan);
  return scan;
}

TEST(OneAFile, HasAllGpusOfOneCause) {
  Scan scan;
  scan.findings = {finding("a.so", "sm_120", {"sm_80"}), finding("a.so", "sm_75", {"sm_80"}),
                   finding("b.so", "sm_75", {"sm_80"}),
                   finding("a.so", "sm_86", {"sm_80"}, Cause::latent_gap, Severity::warning)};
  const Scan got = merged(std::move(scan));
  ASSERT_THAT(got.findings, SizeIs(3));
  const Finding& first = got.findings[0];
  EXPECT_EQ(first.object, "a.so");
  EXPECT_EQ(first.need, "sm_75") << "the lowest leads";
  EXPECT_THAT(targets_of(first), ElementsAre("sm_75", "sm_120"));
  EXPECT_THAT(first.evidence, SizeIs(2));
  EXPECT_THAT(title_of(first), AllOf(HasSubstr("sm_75"), HasSubstr("sm_120")));
  EXPECT_EQ(got.findings[1].object, "b.so");
  EXPECT_THAT(targets_of(got.findings[2]), ElementsAre("sm_86"));
}

// torchao's _C_cutlass_90a.abi3.so, which it loads on Hopper.
TEST(AFileNamedAfterItsGpus, IsForOthers) {
  const auto severity = [](std::string file, std::vector<std::string> has, bool alone = false) {
    Scan scan;
    scan.objects = {object(file, has, {"sm_75"}, {}, "torchao")};
    if (!alone) scan.objects.push_back(object("_C_mxfp8.so", {"sm_100"}, {"sm_75"}, {}, "torchao"));
    scan.findings = {finding(file, "sm_75", has)};
    scan.findings[0].package.name = "torchao";
    excuse_files_for_other_gpus(scan);
    return scan.findings[0].severity;
  };
  EXPECT_EQ(severity("torchao/_C_cutlass_90a.abi3.so", {"sm_90a"}), Severity::info);
  EXPECT_EQ(severity("lib/sm90/ops.so", {"sm_90"}), Severity::info);
  EXPECT_EQ(severity("torchao/_C_cutlass_90a.abi3.so", {"sm_90a"}, true), Severity::error)
      << "all that it has";
  EXPECT_EQ(severity("lib/sm90/ops.so", {"sm_90", "sm_80"}), Severity::error)
      << "it has code for others, too";
  EXPECT_EQ(severity("libfoo_80.so", {"sm_80"}), Severity::error) << "a plain number may be anything";
}

Finding built_file(std::string_view target) {
  Finding out = finding("a.so", target, {"sm_80"});
  Facts at;
  at.cause = out.cause;
  at.file.path = out.object;
  at.gpu.cc = arch(target).cc;
  at.images.have = {{image::ImageKind::cubin, arch("sm_80"), {}}};
  out.about = std::make_shared<const Facts>(std::move(at));
  return out;
}

TEST(OneAFile, OneBuildIsForAllGpus) {
  Scan scan;
  scan.findings = {built_file("sm_75"), built_file("sm_120")};
  std::vector<Finding> found = merged(std::move(scan)).findings;
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].about->gpu.also, ElementsAre(image::ComputeCapability{12, 0}));
  ASSERT_THAT(found[0].about_others, SizeIs(1));
  EXPECT_THAT(found[0].about_others[0]->gpu.also, ElementsAre(image::ComputeCapability{7, 5}));
  advise_on(found);
  ASSERT_FALSE(found[0].fixes.empty());
  EXPECT_THAT(found[0].fixes[0].commands.at(0), AllOf(HasSubstr("sm_75"), HasSubstr("sm_120")));
  // With each build system once, not once a GPU.
  EXPECT_EQ(std::ranges::count(found[0].fixes, "rebuild", &Fix::id),
            std::ranges::count(advise_on(*found[0].about).fixes, "rebuild", &Fix::id));
}

// No toolkit builds for both: a finding is about one remedy, and each GPU's fixes are kept.
TEST(OneAFile, KeepsFixesThatDiffer) {
  Scan scan;
  scan.findings = {built_file("sm_35"), built_file("sm_120")};
  std::vector<Finding> found = merged(std::move(scan)).findings;
  advise_on(found);
  std::set<std::vector<std::string>> commands;
  for (const Finding& each : found)
    for (const Fix& fix : each.fixes) commands.insert(fix.commands);
  EXPECT_GE(commands.size(), 2U);
}

TEST(OneAFile, CountsTheMostThatAnyGpuLacks) {
  Scan scan;
  scan.objects = {object("a.so", {"sm_75", "sm_80"}, {"sm_75", "sm_90"}, {"sm_75", "sm_90"})};
  scan.objects[0].targets[1].lacking = 7;
  scan.objects[0].kernel_modules = 8;
  for (const char* target : {"sm_75", "sm_90"}) {
    scan.findings.push_back(finding("a.so", target, {"sm_80"}, Cause::latent_gap, Severity::warning));
    scan.findings.back().headline = std::string("{file}: some of ") + target + " lack {gpu}";
  }
  EXPECT_EQ(title_of(merged(std::move(scan)).findings.at(0)),
            "a.so: up to 7 of 8 modules have no code for sm_75 and sm_90");
}

Finding loose(int number, std::string_view have, std::string_view target = "sm_75") {
  Finding out = finding("x/" + std::to_string(number) + ".cubin", target, {std::string(have)});
  out.package.name = "cubins";
  return out;
}

TEST(LooseImages, OfOnePackageAreOneFinding) {
  // In any order, by any thread: the same finding.
  std::vector<Finding> orders[2];
  for (const int turn : {0, 1}) {
    LooseFindings sum;
    LooseFindings other;
    for (int i = 0; i < 40; ++i) {
      const int number = turn == 0 ? i : 39 - i;
      (number % 3 == turn ? sum : other).add(loose(number, number % 2 == 0 ? "sm_100a" : "sm_103a"));
    }
    sum.add(std::move(other));
    orders[turn] = std::move(sum).take();
  }
  ASSERT_THAT(orders[0], SizeIs(1));
  const Finding& one = orders[0][0];
  EXPECT_EQ(one.count, 40U);
  EXPECT_THAT(one.other_objects, SizeIs(39));
  EXPECT_THAT(one.have, ElementsAre("sm_100a", "sm_103a"));
  ASSERT_THAT(one.images, SizeIs(2));
  EXPECT_EQ(one.images[0].count + one.images[1].count, 40U);
  EXPECT_EQ(orders[1].at(0).object, one.object);
  EXPECT_EQ(orders[1][0].other_objects, one.other_objects);
}

TEST(LooseImages, AreOneFindingForAllGpus) {
  LooseFindings sum;
  for (const char* target : {"sm_120", "sm_75"})
    for (int i = 0; i < 20; ++i) sum.add(loose(i, "sm_100a", target));
  Scan scan;
  scan.findings = std::move(sum).take();
  const Scan got = merged(std::move(scan));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(targets_of(got.findings[0]), ElementsAre("sm_75", "sm_120"));
}

TEST(LooseImages, AFewStayAsTheyAre) {
  LooseFindings sum;
  for (int i = 0; i < 4; ++i) sum.add(loose(i, "sm_100a"));
  EXPECT_THAT(std::move(sum).take(), SizeIs(4));
}

// What to build for: not for GPUs below what the code was made for.

std::vector<std::string> planned(Scan& scan) {
  note_code_for_newer_gpus(scan);
  std::vector<std::string> out;
  for (const FleetPlan& plan : fleet_plans(scan))
    for (const FleetArch& row : plan.smallest.archs)
      out.emplace_back(image::to_name(image::ImageKind::cubin, row.arch).view());
  return out;
}

Scan asked(std::vector<std::string> targets, std::vector<ScannedObject> objects,
           std::vector<Finding> findings) {
  Scan scan;
  for (const std::string& name : targets) scan.targets.push_back(arch(name));
  scan.objects = std::move(objects);
  scan.findings = std::move(findings);
  return scan;
}

TEST(Plan, OfAFileThatNobodyLeftOutOnPurposeHasTheOldGpu) {
  Scan scan = asked({"sm_75", "sm_90"}, {object("a.so", {"sm_80"}, {"sm_75", "sm_90"})},
                    {finding("a.so", "sm_75", {"sm_80"}), finding("a.so", "sm_90", {"sm_80"})});
  EXPECT_THAT(planned(scan), ElementsAre("sm_75", "sm_90"));
  EXPECT_THAT(scan.findings[0].remarks, IsEmpty());
}

TEST(Plan, LeavesOutWhatTheFilesOwnModulesWereLeftOutFor) {
  // Other modules of the file have sm_75: these begin at 8.0 because their source does.
  Scan scan = asked({"sm_75", "sm_90"}, {object("a.so", {"sm_75", "sm_80"}, {"sm_75", "sm_90"}, {"sm_75"})},
                    {finding("a.so", "sm_75", {"sm_80", "sm_86"}, Cause::latent_gap, Severity::warning),
                     finding("a.so", "sm_90", {"sm_75", "sm_80"})});
  note_code_for_newer_gpus(scan);
  const auto plans = fleet_plans(scan);
  ASSERT_THAT(plans, SizeIs(1));
  EXPECT_THAT(plans[0].lacking, ElementsAre(image::ComputeCapability{9, 0}));
  EXPECT_THAT(scan.findings[0].remarks, ElementsAre(HasSubstr("8.0")));
  EXPECT_THAT(scan.findings[1].remarks, IsEmpty());
}

TEST(Plan, LeavesOutWhatThePackageBuildsForElsewhere) {
  const std::vector<std::string> targets = {"sm_75", "sm_120"};
  std::vector<ScannedObject> objects = {object("fa2.so", {"sm_80"}, targets, {}, "vllm"),
                                        object("base.so", {"sm_75"}, targets, {"sm_75"}, "vllm")};
  objects[1].modules = 118;
  Scan scan = asked(targets, objects,
                    {finding("fa2.so", "sm_75", {"sm_80"}), finding("fa2.so", "sm_120", {"sm_80"})});
  EXPECT_THAT(planned(scan), ElementsAre("sm_120"));
  scan = asked({"sm_75"}, objects, {finding("fa2.so", "sm_75", {"sm_80"})});
  EXPECT_THAT(planned(scan), IsEmpty());
  scan.objects[1].package.name = "another";
  EXPECT_THAT(planned(scan), Not(IsEmpty()));
  scan.objects[1].package.name = "vllm";
  scan.objects[0].modules = 456;
  EXPECT_THAT(planned(scan), Not(IsEmpty())) << "the small file is no measure for the large one";
}

TEST(Plan, OfLockedCodeNeverBeginsBelowItsFamily) {
  Scan scan = asked({"sm_75"}, {object("fa3.so", {"sm_90a"}, {"sm_75"})},
                    {finding("fa3.so", "sm_75", {"sm_90a"}, Cause::arch_specific_image)});
  EXPECT_THAT(planned(scan), IsEmpty());
}

TEST(Plan, OfThousandsOfLooseImagesIsNone) {
  LooseFindings sum;
  for (int i = 0; i < 20; ++i) sum.add(loose(i, "sm_90"));
  Scan scan = asked({"sm_75"}, {object("x/0.cubin", {"sm_90"}, {"sm_75"})}, std::move(sum).take());
  EXPECT_THAT(planned(scan), IsEmpty());
}

}  // namespace
}  // namespace kshim::test
