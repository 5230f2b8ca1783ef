// SPDX-License-Identifier: Apache-2.0
// Modules against targets. PTX serves as device code throughout: its kernels can be written down here.
#include <gtest/gtest.h>

#include <deque>

#include "analyzer/diagnose/coverage.h"
#include "analyzer/verbs/scan_parts.h"
#include "target_arch.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ImageKind;

class Judging : public ::testing::Test {
 protected:
  // PTX for `target` with these kernels, as one more image.
  void ptx(std::string_view target, const std::vector<std::string>& kernels, bool relocatable = false) {
    std::string text = ".version 6.0\n.target sm_" + std::string(target) + "\n.address_size 64\n";
    for (const std::string& kernel : kernels) text += ".visible .entry " + kernel + "()\n{\nret;\n}\n";
    image(ImageKind::ptx, target, text);
    code_.images.back().relocatable = relocatable;
  }
  void image(ImageKind kind, std::string_view target, std::string text) {
    texts_.push_back(std::move(text));
    CodeImage image;
    image.candidate = {kind, arch(target), {}};
    image.payload = Bytes(reinterpret_cast<const std::byte*>(texts_.back().data()), texts_.back().size());
    image.bytes = texts_.back().size();
    code_.images.push_back(image);
  }
  // The images added since the last module.
  void module(std::vector<std::uint32_t> parts = {}) {
    const auto end = static_cast<std::uint32_t>(code_.images.size());
    CodeModule row;
    row.first = taken_;
    row.count = end - taken_ - static_cast<std::uint32_t>(parts.size());
    row.parts = std::move(parts);
    taken_ = end;
    code_.modules.push_back(row);
    code_.host = HostFormat::elf;
  }

  std::vector<Finding> findings(std::string_view target, bool kernels, std::string path = "libfoo.so") {
    object_.path = std::move(path);
    object_.images = count_images(code_);
    table_ = {};
    coverage_ = cover(code_, {arch(target)}, {}, kernels ? &table_ : nullptr);
    object_.targets = coverage_.targets;
    return findings_of({object_, code_, coverage_, {}, kernels ? &table_ : nullptr, true}, {});
  }

  DeviceCode code_;
  ScannedObject object_;
  KernelTable table_;
  FileCoverage coverage_;

 private:
  std::deque<std::string> texts_;  // payloads point into them
  std::uint32_t taken_ = 0;
};

TEST_F(Judging, AFileInWhichNothingFitsIsAnError) {
  ptx("80", {"one"});
  module();
  const auto found = findings("7.5", false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::error);
  EXPECT_EQ(found[0].cause, Cause::ptx_newer_than_device);
  EXPECT_TRUE(object_.targets[0].nothing_fits());
}

TEST_F(Judging, AKernelThatOnlyOtherModulesServeIsNamed) {
  // 1cat-87: one kernel of a library is built for fewer architectures than its neighbors.
  ptx("70", {"common"});
  ptx("80", {"common"});
  module();
  ptx("80", {"gptq_repack"});
  module();
  const auto found = findings("7.0", true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_EQ(found[0].kernels, std::vector<std::string>{"gptq_repack"});
  EXPECT_EQ(object_.targets[0].kernels_lacking, 1U);
  EXPECT_FALSE(object_.targets[0].serves());
  EXPECT_TRUE(findings("8.0", true).empty());
}

TEST_F(Judging, TellsTheMostThatAKernelTakesOverAllModules) {
  const auto text = [](std::string_view threads) {
    return ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n.maxntid " +
           std::string(threads) + "\n{\nret;\n}\n";
  };
  image(ImageKind::ptx, "70", text("64, 2, 1"));
  module();
  image(ImageKind::ptx, "70", text("256"));
  module();
  image(ImageKind::ptx, "80", text("32"));
  module();
  findings("7.0", true);
  const std::vector<KernelUse>& uses = table_.kernels.at("k").uses;
  ASSERT_EQ(uses.size(), 2U) << "one an architecture";
  EXPECT_EQ(uses[0].max_threads, 256U);
  EXPECT_EQ(uses[1].max_threads, 32U);
  EXPECT_EQ(uses[0].registers, image::KernelInfo::kUnknown) << "PTX has none yet";
}

TEST_F(Judging, WithoutNamesTheModulesAreCounted) {
  ptx("70", {"common"});
  module();
  ptx("80", {"gptq_repack"});
  module();
  const auto found = findings("7.0", false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_LE(found[0].confidence, 0.5);
  EXPECT_EQ(object_.targets[0].lacking, 1U);
}

TEST_F(Judging, TheSameKernelInAnotherModuleIsNoGap) {
  ptx("70", {"common"});
  module();
  ptx("80", {"common"});
  module();
  EXPECT_TRUE(findings("7.0", true).empty());
  EXPECT_TRUE(object_.targets[0].serves());
}

TEST_F(Judging, TheDriverTakesOneImageAndAKernelThatIsInAnotherIsMissing) {
  ptx("70", {"common", "guarded"});
  ptx("80", {"common"});  // taken on 8.0, where it is the closest
  module();
  const auto found = findings("8.0", true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kernels, std::vector<std::string>{"guarded"});
  EXPECT_TRUE(findings("7.0", true).empty());
}

TEST_F(Judging, AModuleWithoutKernelsLacksNothing) {
  ptx("70", {"common"});
  module();
  ptx("80", {});
  module();
  EXPECT_TRUE(findings("7.0", false).empty());
  EXPECT_TRUE(findings("7.0", true).empty());
  EXPECT_EQ(object_.targets[0].lacking, 0U);
}

TEST_F(Judging, AModuleHasKernelsWhereAnyImageHasOne) {
  ptx("80", {});  // the smallest: guarded out there, or a part of another source
  ptx("90", {"only_here"});
  module();
  const auto found = findings("7.0", false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::error);
  EXPECT_EQ(object_.targets[0].lacking, 1U);
}

TEST_F(Judging, AnOldDriverReadsNoZstandard) {
  ptx("70", {"common"});
  module();
  code_.images.back().compression = image::Compression::zstd;
  for (const auto& [driver, served] : {std::pair(image::Version{12, 3}, 0U), {image::Version{12, 4}, 1U}}) {
    const FileCoverage judgment = cover(code_, {arch("8.0")}, driver, nullptr);
    EXPECT_EQ(judgment.targets[0].jit, served);
    EXPECT_EQ(judgment.targets[0].lacking, 1 - served);
  }
}

TEST_F(Judging, AFileWithoutKernelsIsNoError) {
  ptx("80", {});
  module();
  EXPECT_TRUE(findings("7.0", false).empty());
}

TEST_F(Judging, LtoIrIsForTheLinkerAndNoGap) {
  ptx("70", {"common"});
  module();
  image(ImageKind::ltoir, "80", "not read");
  module();
  EXPECT_TRUE(findings("7.0", false).empty());
  EXPECT_TRUE(findings("7.0", true).empty());
}

// libcudf: LTO-IR for each GPU beside PTX for the newest.
TEST_F(Judging, LtoIrBesidePtxIsForTheLinkerWhereItFits) {
  image(ImageKind::ltoir, "80", "not read");
  ptx("120", {"fragment"});
  module();
  for (const bool kernels : {false, true}) {
    EXPECT_TRUE(findings("8.9", kernels).empty());
    EXPECT_FALSE(findings("7.5", kernels).empty()) << "neither fits";
  }
}

// The runtime hands the module to the driver, and nobody links it: the launch fails with 209.
TEST_F(Judging, LtoIrThatTheRuntimeRegistersServesNobody) {
  image(ImageKind::ltoir, "75", "not read");
  ptx("80", {"one"});
  module();
  code_.modules.back().registered = true;
  for (const bool kernels : {false, true}) {
    EXPECT_EQ(findings("7.5", kernels).size(), 1U);
    EXPECT_TRUE(findings("8.9", kernels).empty());
  }
}

// cuSPARSE of CUDA 13: 34 modules that it links with the user's operators have sm_70, the 121 others begin
// at 7.5.
TEST_F(Judging, WhatALibraryLinksItselfIsNotWhatItRunsOn) {
  ptx("75", {"spmv"});
  module();
  code_.modules.back().registered = true;
  image(ImageKind::ltoir, "70", "not read");
  ptx("70", {"user_operator"});
  module();
  for (const bool kernels : {false, true}) {
    const auto found = findings("7.0", kernels, "/usr/lib/libcusparse.so.12");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].severity, Severity::error);
    EXPECT_TRUE(coverage_.targets[0].nothing_fits());
    EXPECT_TRUE(findings("8.0", kernels, "/usr/lib/libcusparse.so.12").empty());
  }
}

// NPP for Windows: two of its libraries have one module, which has no kernel.
TEST_F(Judging, AModuleWithoutKernelsServesNobody) {
  ptx("75", {});
  module();
  coverage_ = cover(code_, {arch("7.0"), arch("7.5")}, {}, nullptr);
  for (const TargetVerdict& verdict : coverage_.targets)
    EXPECT_EQ(verdict.sass + verdict.jit + verdict.lacking, 0U);
}

// Device libraries leave such modules everywhere: PTX and a cubin without a kernel, which fit many GPUs.
TEST_F(Judging, AVerdictDoesNotDependOnTheOtherTargets) {
  ptx("75", {});
  module();
  ptx("75", {"served"});
  module();
  ptx("90", {"hopper"});
  module();
  const std::vector<std::string> names = {"6.1", "7.0", "7.5", "8.0", "9.0", "12.0"};
  std::vector<image::Arch> all;
  for (const std::string& name : names) all.push_back(arch(name));
  for (const bool kernels : {false, true}) {
    KernelTable table;
    const FileCoverage together = cover(code_, all, {}, kernels ? &table : nullptr);
    for (std::size_t i = 0; i < all.size(); ++i) {
      KernelTable of_one;
      const FileCoverage alone = cover(code_, {all[i]}, {}, kernels ? &of_one : nullptr);
      EXPECT_EQ(alone.lacking[0], together.lacking[i]) << names[i];
      EXPECT_EQ(alone.targets[0].sass, together.targets[i].sass) << names[i];
      EXPECT_EQ(alone.targets[0].jit, together.targets[i].jit) << names[i];
      EXPECT_EQ(alone.targets[0].sass + alone.targets[0].jit + alone.targets[0].lacking, 2U) << names[i];
    }
  }
}

// Beyond what is looked into, modules are taken to have kernels, and a verdict never rests on such a one.
TEST_F(Judging, AVerdictRestsOnModulesThatHaveKernels) {
  const std::string blank(1U << 19U, ' ');
  const auto large = [&](std::string_view target, const std::string& kernel) {
    image(ImageKind::ptx, target,
          ".version 6.0\n.target sm_" + std::string(target) + "\n.address_size 64\n" + blank +
              (kernel.empty() ? "" : ".visible .entry " + kernel + "()\n{\nret;\n}\n"));
    module();
  };
  for (int i = 0; i < 30; ++i) large("70", "");
  large("90", "hopper");
  coverage_ = cover(code_, {arch("8.0"), arch("9.0")}, {}, nullptr);
  EXPECT_TRUE(coverage_.targets[0].nothing_fits());
  EXPECT_EQ(coverage_.targets[0].lacking, 1U);
  EXPECT_GE(coverage_.targets[1].jit, 1U);
  for (int i = 0; i < 30; ++i) large("100", "");
  large("70", "volta");
  coverage_ = cover(code_, {arch("9.0")}, {}, nullptr);
  EXPECT_EQ(coverage_.targets[0].lacking, 0U);
  EXPECT_GE(coverage_.targets[0].jit, 2U);
}

TEST_F(Judging, TileIrIsCompiledFor8_0AndLater) {
  image(ImageKind::tileir, "100", "not read");
  module();
  for (const bool kernels : {false, true}) {
    EXPECT_TRUE(findings("8.6", kernels).empty());
    EXPECT_EQ(coverage_.targets[0].jit, 1U);
    EXPECT_EQ(findings("7.5", kernels).size(), 1U);
  }
}

TEST_F(Judging, AnImageOfAnUnknownKindMayFit) {
  ptx("120", {"common"});
  module();
  code_.damage.push_back({0, "holds an image of kind 0x99", Damage::Of::unknown_kind});
  code_.modules[0].damage = 1;
  for (const bool kernels : {false, true}) EXPECT_TRUE(findings("7.5", kernels).empty());
  code_.damage[0].of = Damage::Of::device_code;
  EXPECT_EQ(findings("7.5", false).size(), 2U) << "the damage, and that nothing fits";
}

TEST_F(Judging, RelocatablePartsServeTheirModule) {
  ptx("80", {"linked"});
  ptx("70", {"part"}, true);
  module({1});
  EXPECT_TRUE(findings("7.0", false).empty());
  EXPECT_EQ(coverage_.targets[0].jit, 1U);
}

TEST_F(Judging, LibrariesThatPickAnotherKernelAreTold) {
  ptx("70", {"common"});
  module();
  ptx("80", {"for_ampere"});
  module();
  const auto found = findings("7.0", true, "/usr/lib/libcublasLt.so.13");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::info);
  EXPECT_TRUE(object_.targets[0].picks);
  EXPECT_TRUE(object_.targets[0].serves());
}

TEST_F(Judging, ExplicitlyLoadedModulesMayTargetOneGpuEach) {
  // PyTorch 2.15: 29 kernels of CuTe DSL, embedded once for 9.0 and once for 10.0.
  ptx("70", {"common"});
  module();
  ptx("90", {"topk_of_90"});
  module();
  code_.modules.back().embedded = true;
  const auto found = findings("7.0", false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::info);
  EXPECT_TRUE(object_.targets[0].serves());
  code_.modules.front().embedded = true;  // nothing registered: nobody says what the main code is
  EXPECT_EQ(findings("7.0", false)[0].severity, Severity::warning);
  code_.modules.front().embedded = false;
  code_.modules.back().embedded = false;
  EXPECT_EQ(findings("7.0", false)[0].severity, Severity::warning);
}

TEST_F(Judging, EvenThereAFileInWhichNothingFitsIsAnError) {
  ptx("80", {"for_ampere"});
  module();
  const auto found = findings("7.0", true, "/usr/lib/libcublasLt.so.13");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::error);
}

TEST_F(Judging, LockedCodeBesideOtherCodeIsNoGap) {
  ptx("70", {"common"});
  module();
  ptx("90a", {"wgmma"});
  module();
  const auto found = findings("8.0", true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::info);
  EXPECT_TRUE(object_.targets[0].picks);
}

TEST_F(Judging, BrokenPayloadsAreDamageAndTheRestIsJudged) {
  ptx("70", {"common"});
  module();
  ptx("70", {"lost"});
  code_.images.back().compression = image::Compression::zstd;  // which it is not
  module();
  const auto found = findings("7.0", true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].cause, Cause::invalid_image);
  EXPECT_EQ(table_.kernels.count("common"), 1U);
  EXPECT_FALSE(table_.complete);
}

TEST_F(Judging, ImagesAreCountedByKindArchitectureAndIsa) {
  ptx("80", {"one"});
  ptx("80", {"two"});
  ptx("70", {"three"});
  module();
  const auto rows = count_images(code_);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].candidate.arch, arch("70"));
  EXPECT_EQ(rows[1].count, 2U);
}

TEST_F(Judging, CubinsOfRelocatablePartsAreTheLinkersOnly) {
  ptx("80", {"one"});
  image(ImageKind::cubin, "80", "raw");
  code_.images.back().relocatable = true;
  module({1});
  EXPECT_EQ(count_images(code_).size(), 1U);
  code_.images.erase(code_.images.begin());
  EXPECT_EQ(count_images(code_).size(), 1U);  // nothing is linked yet: it is all there is
}

}  // namespace
}  // namespace kshim::test
