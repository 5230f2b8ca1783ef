// SPDX-License-Identifier: Apache-2.0
// What a file has for a GPU, where analyze and scan used to have answers of their own.
#include "analyzer/diagnose/coverage.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

CodeImage image_of(std::string_view arch, image::Compression how = image::Compression::none) {
  CodeImage out;
  out.candidate.kind = arch.starts_with("sm_") ? image::ImageKind::cubin : image::ImageKind::ptx;
  out.candidate.arch = *image::parse_arch(arch);
  out.compression = how;
  return out;
}

DeviceCode code_of(std::vector<CodeImage> images, std::vector<bool> embedded) {
  DeviceCode out;
  out.images = std::move(images);
  for (std::uint32_t i = 0; i < out.images.size(); ++i) {
    CodeModule module;
    module.first = i;
    module.count = 1;
    module.embedded = embedded.at(i);
    out.modules.push_back(module);
  }
  return out;
}

// Drivers before CUDA 12.4 do not decompress Zstandard.
TEST(Coverage, WhatADriverCannotDecompressServesNobody) {
  const DeviceCode code =
      code_of({image_of("sm_86", image::Compression::zstd), image_of("sm_86")}, {false, false});
  const auto lacks = [&](std::size_t module, image::ComputeCapability cc, image::Version driver) {
    ModuleCoverage modules(code, driver);
    return modules.set(code.modules[module]) && modules.on(cc).lacks();
  };
  EXPECT_TRUE(lacks(0, {8, 6}, {12, 3}));
  EXPECT_FALSE(lacks(0, {8, 6}, {12, 4}));
  EXPECT_FALSE(lacks(1, {8, 6}, {12, 3}));
  EXPECT_TRUE(lacks(1, {9, 0}, {12, 3}));
}

TEST(Coverage, ModulesThatAProgramLoadsByItselfAreItsChoice) {
  const DeviceCode code =
      code_of({image_of("sm_80"), image_of("sm_90a"), image_of("sm_100a")}, {false, true, true});
  const std::vector<std::uint32_t> embedded = {1, 2};
  const std::vector<std::uint32_t> registered = {0, 1};
  EXPECT_EQ(missed_modules("libx.so", code, embedded, 1).by_design, ByDesign::loaded_by_choice);
  EXPECT_EQ(missed_modules("libx.so", code, registered, 1).modules, std::vector<std::uint32_t>{0})
      << "the runtime registers it, and the other one is locked";
  EXPECT_EQ(missed_modules("libx.so", code, registered, 0).modules, registered) << "nothing else serves";
}

TEST(Coverage, ALibraryThatPicksItsCodeLeavesOutWhatItHasNextToNothingFor) {
  std::vector<CodeImage> images(41, image_of("sm_90"));
  images.front() = image_of("compute_52");
  const DeviceCode code = code_of(images, std::vector<bool>(images.size(), false));
  std::vector<std::uint32_t> lacking(40);
  std::iota(lacking.begin(), lacking.end(), 1);
  EXPECT_EQ(missed_modules("libcublasLt.so.12", code, lacking, 1).modules, lacking);
  EXPECT_EQ(missed_modules("cublasLt64_12.dll", code, lacking, 1).modules, lacking);
  lacking.resize(30);
  EXPECT_EQ(missed_modules("libcublasLt.so.12", code, lacking, 11).by_design, ByDesign::probing_library);
  // Fatbins without a kernel serve nothing: 180 of 199 lacked code, and one of the others had it.
  EXPECT_EQ(missed_modules("libcublasLt.so.12", code, lacking, 1).modules, lacking);
}

TEST(Coverage, LockedModulesAreForOthersWhereOtherCodeServes) {
  const DeviceCode code =
      code_of({image_of("sm_80"), image_of("sm_90a"), image_of("compute_90")}, {false, false, false});
  const std::vector<std::uint32_t> locked = {1};
  const std::vector<std::uint32_t> both = {1, 2};
  EXPECT_EQ(missed_modules("libx.so", code, locked, 1).by_design, ByDesign::locked);
  EXPECT_EQ(missed_modules("libx.so", code, both, 1).modules, std::vector<std::uint32_t>{2});
}

TEST(Coverage, LtoIrIsForTheLinker) {
  CodeImage lto = image_of("compute_80");
  lto.candidate.kind = image::ImageKind::ltoir;
  const DeviceCode code = code_of({lto}, {false});
  EXPECT_FALSE(ModuleCoverage(code, {}).set(code.modules[0]));
}

ImageFact fact_of(std::string_view arch, image::Version isa = {}) {
  ImageFact out;
  out.candidate = image_of(arch).candidate;
  out.candidate.isa = isa;
  return out;
}

// cuFFT of CUDA 13.0: PTX 7.8 beside cubins for sm_110, which CUDA 11.8 cannot have built.
TEST(Coverage, OldPtxDoesNotMakeAnOldFile) {
  const std::vector<ImageFact> images = {fact_of("compute_80", {7, 8}), fact_of("sm_110")};
  const BuiltBy built = builder_of(images, {});
  EXPECT_EQ(built.toolkit, (image::Version{13, 0}));
  EXPECT_EQ(builder_of(std::span(images).first(1), {}).toolkit, (image::Version{11, 8}));
  EXPECT_EQ(builder_of(images, {12, 9}).toolkit, (image::Version{12, 9})) << "the cubins say so";
}

}  // namespace
}  // namespace kshim::test
