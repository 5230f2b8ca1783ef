// SPDX-License-Identifier: Apache-2.0
// Several findings of one environment: no fix contradicts another, and none that another makes needless is
// shown.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ComputeCapability;

PythonEnvironment venv(const std::string& prefix = "/v") {
  return {.prefix = prefix, .interpreter = prefix + "/bin/python", .site = {}, .installed = {}};
}

Finding about(Facts at) {
  Finding out;
  out.cause = at.cause;
  out.about = std::make_shared<const Facts>(std::move(at));
  return out;
}

Finding torch_fails(ComputeCapability device, const char* version, const PythonEnvironment& python,
                    std::vector<ComputeCapability> others = {}) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.gpu.cc = device;
  at.driver.cuda = {13, 0};
  at.file.path = python.prefix + "/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so";
  at.file.origin = Origin::installed;
  at.package.name = "torch";
  at.package.version = version;
  at.package.manager = "pip";
  at.process.python_env = python;
  at.gpu.others = std::move(others);
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_80"), {}}};
  return about(std::move(at));
}

Finding cudnn_drops(ComputeCapability device, const PythonEnvironment& python) {
  Facts at;
  at.cause = Cause::cudnn_mismatch;
  at.gpu.cc = device;
  at.process.python_env = python;
  CudaLibrary cudnn;
  cudnn.family = "cudnn";
  cudnn.version = "9.5.0";
  cudnn.cuda = 12;
  cudnn.package = "nvidia-cudnn-cu12";
  at.process.conflict.emplace().kind = LibraryConflictKind::dropped;
  at.process.conflict->libraries = {cudnn};
  return about(std::move(at));
}

std::string argument(const Fix& fix, std::string_view name) {
  for (const auto& [key, value] : fix.arguments)
    if (key == name) return value;
  return {};
}

// MAGMA comes to PyTorch's build as a finished library: no list of PyTorch's changes its kernels.
TEST(Settle, KernelsOfMagmaAreNamedSoAndNoBuildOfPyTorchIsShown) {
  Finding failed = torch_fails({7, 5}, "2.10.0+cu126", venv());
  Facts at = *failed.about;
  at.file.path = "/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda_linalg.so";
  std::vector<Finding> findings = {about(at)};
  advise_on(findings);
  settle(findings);
  const std::vector<Fix>& fixes = findings[0].fixes;
  const auto magma = std::ranges::find(fixes, "prefer-cusolver", &Fix::id);
  ASSERT_NE(magma, fixes.end());
  EXPECT_NE(magma->why.find("MAGMA"), std::string::npos);
  for (const Fix& fix : fixes)
    for (const std::string& command : fix.commands)
      EXPECT_EQ(command.find("TORCH_CUDA_ARCH_LIST"), std::string::npos) << command;
}

// JAX 0.10.2 looks for ptxas in CUDA_ROOT, or in the folder of nvidia's packages, before the one its flag
// names.
TEST(Settle, AnotherPtxasForJaxIsNamedByBothOfItsVariables) {
  Facts at;
  at.cause = Cause::nvrtc_arch_unsupported;
  at.gpu.cc = ComputeCapability{12, 0};
  CompilerFacts old;
  old.name = "ptxas";
  old.asked = *image::parse_arch("sm_120a");
  old.version = {12, 0};
  old.path = "/old/bin/ptxas";
  old.selects = "XLA_FLAGS";
  old.other = "/usr/local/cuda-13.0/bin/ptxas";
  old.other_version = {13, 0};
  at.call.compiler = old;
  std::vector<Finding> findings = {about(at)};
  advise_on(findings);
  settle(findings);
  ASSERT_FALSE(findings[0].fixes.empty());
  ASSERT_EQ(findings[0].fixes[0].id, "select-compiler");
  EXPECT_EQ(findings[0].fixes[0].commands[0],
            "export CUDA_ROOT=/usr/local/cuda-13.0 "
            "XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_cuda_data_dir=\"/usr/local/cuda-13.0");
}

TEST(Settle, WhatPyTorchBringsIsNotInstalledBesideIt) {
  std::vector<Finding> findings = {torch_fails({12, 0}, "2.7.1+cu126", venv()), cudnn_drops({12, 0}, venv())};
  advise_on(findings);
  settle(findings);
  ASSERT_FALSE(findings[0].fixes.empty());
  EXPECT_EQ(argument(findings[0].fixes[0], "package"), "torch");
  EXPECT_TRUE(findings[1].fixes.empty()) << findings[1].fixes[0].title;
  EXPECT_FALSE(findings[1].remarks.empty()) << "it says why";
}

TEST(Settle, AnotherEnvironmentIsAnotherMatter) {
  std::vector<Finding> findings = {torch_fails({12, 0}, "2.7.1+cu126", venv()),
                                   cudnn_drops({12, 0}, venv("/w"))};
  advise_on(findings);
  settle(findings);
  EXPECT_FALSE(findings[1].fixes.empty());
}

TEST(Settle, NoDriverIsUselessThatAnotherFindingAsksFor) {
  Facts old;
  old.cause = Cause::driver_too_old;
  old.call.code = 35;
  old.driver.cuda = {12, 0};
  old.driver.runtime = {13, 0};
  std::vector<Finding> findings = {torch_fails({12, 0}, "2.7.1+cu126", venv()), about(std::move(old))};
  std::vector<Finding> alone = {findings[0]};
  advise_on(alone);
  settle(alone);
  EXPECT_TRUE(std::any_of(alone[0].dead_ends.begin(), alone[0].dead_ends.end(),
                          [](const DeadEnd& row) { return row.of_driver; }));
  advise_on(findings);
  settle(findings);
  EXPECT_TRUE(std::any_of(findings[1].fixes.begin(), findings[1].fixes.end(),
                          [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; }));
  EXPECT_TRUE(std::none_of(findings[0].dead_ends.begin(), findings[0].dead_ends.end(),
                           [](const DeadEnd& row) { return row.of_driver; }));
}

// Two GPUs in one machine, each release of PyTorch: the builds that are asked for are the same wherever one
// serves both.
TEST(Settle, TwoGpusAreNotSentToTwoBuilds) {
  std::size_t asked = 0;
  for (const GpuRow& a : gpus()) {
    for (const GpuRow& b : gpus()) {
      if (a.cc == b.cc || a.tegra || b.tegra) continue;
      for (const char* version : {"2.1.0+cu121", "2.7.1+cu126", "2.9.1+cu128", "2.9.1+cu130"}) {
        std::vector<Finding> findings = {torch_fails(a.cc, version, venv(), {b.cc}),
                                         torch_fails(b.cc, version, venv(), {a.cc}),
                                         cudnn_drops(a.cc, venv())};
        advise_on(findings);
        settle(findings);
        std::vector<const Fix*> builds;
        for (const Finding& finding : findings)
          for (const Fix& fix : finding.fixes) {
            const std::string package = argument(fix, "package");
            if (fix.id == "install-build" && package == "torch") builds.push_back(&fix);
            if (!builds.empty()) {
              EXPECT_FALSE(package.starts_with("nvidia-")) << fix.title;
            }
          }
        if (builds.size() < 2) continue;
        ++asked;
        if (builds[0]->arguments == builds[1]->arguments) continue;
        const bool both = std::any_of(wheels().begin(), wheels().end(), [&](const WheelRow& row) {
          return row.distribution == "torch" && row.platform == kLinux &&
                 row.variant == argument(*builds[0], "variant") && serves(row, a.cc) != image::Choice::none &&
                 serves(row, b.cc) != image::Choice::none &&
                 is_within(argument(*builds[0], "release"), row.first, row.last);
        });
        EXPECT_FALSE(both) << version << " " << image::to_name(a.cc).c_str() << " "
                           << image::to_name(b.cc).c_str();
      }
    }
  }
  EXPECT_GT(asked, 50U);
}

}  // namespace
}  // namespace kshim::test
