// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/advice_promises.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "tests/unit/analyzer/advice_situations.h"

namespace kshim::test {
namespace {

using image::Version;
using situations::described;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What follows a lead, as a version: "CUDA 12.9, which" of "CUDA ".
Version version_after(std::string_view text, std::string_view lead) {
  const std::size_t found = text.find(lead);
  if (found == std::string_view::npos) return {};
  std::string_view rest = text.substr(found + lead.size());
  rest = rest.substr(0, std::min(rest.size(), rest.find_first_not_of("0123456789.")));
  while (rest.ends_with('.')) rest.remove_suffix(1);
  return image::parse_version(rest).value_or(Version{});
}

// By the matrix of drivers itself, and not by the function that is tested: a branch begins with its toolkit.
bool drives(const Facts& at, const GpuRow& gpu) {
  if (at.driver.cuda < gpu.first_toolkit) return false;
  if (gpu.last_branch == 0) return true;
  return at.driver.cuda <= (gpu.last_branch == 470 ? Version{11, 4} : Version{13, 0});
}

}  // namespace

void HonestAdvice::check(const Facts& at, const Advice& advice) {
  for (const Fix& fix : advice.fixes) EXPECT_FALSE(fix.id.empty()) << fix.title;
  check_driver(at, advice);
  check_reinstall(at, advice);
  check_dead_ends(at, advice);
  check_sources(at, advice);
}

void HonestAdvice::check_driver(const Facts& at, const Advice& advice) {
  const GpuRow& gpu = *find_gpu(*at.gpu.cc);
  for (const std::string& remark : advice.remarks) {
    if (!has(remark, "driver")) continue;
    if (has(remark, "is fine")) {
      ++fine_;
      EXPECT_TRUE(drives(at, gpu)) << described(at) << " driver " << image::to_name(at.driver.cuda).c_str();
    }
    if (has(remark, "does not support this GPU")) {
      ++contradicted_;
      EXPECT_FALSE(drives(at, gpu)) << described(at) << " driver " << image::to_name(at.driver.cuda).c_str();
      const bool fixed = std::any_of(advice.fixes.begin(), advice.fixes.end(), [](const Fix& fix) {
        return fix.kind == FixKind::upgrade_driver || has(fix.title, "driver of branch R");
      });
      EXPECT_TRUE(fixed) << described(at);
    }
  }
  for (const DeadEnd& row : advice.dead_ends) {
    if (has(row.why, "it serves this GPU already")) {
      EXPECT_TRUE(at.driver.cuda.known() && drives(at, gpu)) << described(at);
    }
  }
}

void HonestAdvice::check_reinstall(const Facts& at, const Advice& advice) {
  const bool lacks = at.cause == Cause::no_image_for_arch || at.cause == Cause::arch_specific_image ||
                     at.cause == Cause::ptx_newer_than_device;
  if (!lacks || !at.file.path.empty() || !at.images.have.empty() || at.package.name != "torch") return;
  const GpuRow& gpu = *find_gpu(*at.gpu.cc);
  const WheelRow* there =
      find_wheel("torch", at.package.version, {}, gpu.tegra ? "linux aarch64" : "linux x86_64");
  if (there == nullptr || serves(*there, *at.gpu.cc) != image::Choice::sass) return;
  ++served_;
  for (const Fix& fix : advice.fixes) {
    for (const std::string& command : fix.commands) {
      EXPECT_FALSE(has(command, "torchvision")) << described(at) << ": " << command;
      EXPECT_FALSE(has(command, "github.com/pytorch")) << described(at) << ": " << command;
    }
  }
}

// No dead end says that what a fix asks for is of no use.
void HonestAdvice::check_dead_ends(const Facts& at, const Advice& advice) {
  for (const DeadEnd& end : advice.dead_ends) {
    ++dead_ends_;
    for (const Fix& fix : advice.fixes) {
      const std::string told = described(at) + ": " + end.action + " / " + fix.title;
      if (end.action == "updating the driver" || end.action.starts_with("updating the driver:")) {
        EXPECT_NE(fix.kind, FixKind::upgrade_driver) << told;
      }
      const bool compiles =
          (fix.kind == FixKind::rebuild || fix.kind == FixKind::downgrade) && !fix.commands.empty();
      if (end.action == "installing a CUDA toolkit") {
        EXPECT_FALSE(compiles) << told;
      }
      if (has(end.action, "an older CUDA runtime")) {
        EXPECT_FALSE(has(fix.title, "compile with CUDA")) << told;
      }
      if (end.action.starts_with("building with a CUDA newer than ")) {
        const Version most = version_after(end.action, "newer than ");
        EXPECT_TRUE(most.known()) << told;
        EXPECT_LE(version_after(fix.title, "Rebuild with CUDA "), most) << told;
        for (const std::string& command : fix.commands) {
          EXPECT_LE(version_after(command, "/usr/local/cuda-"), most) << told << ": " << command;
          if (fix.kind != FixKind::rebuild) continue;
          // Nor is an architecture named that only the newer ones have.
          const std::size_t named = command.find("code=sm_");
          const auto arch = named == std::string::npos
                                ? image::parse_arch("")
                                : image::parse_arch(std::string_view(command).substr(
                                      named + 5, command.find_first_of(" \"", named) - named - 5));
          if (arch && first_toolkit_for(*arch) != nullptr && arch->cc == *at.gpu.cc) {
            EXPECT_LE(first_toolkit_for(*arch)->version, most) << told << ": " << command;
          }
        }
      }
      if (end.action.starts_with("installing the build for ")) {
        for (const std::string& command : fix.commands) {
          const std::size_t url = command.find("/whl/");
          if (url == std::string::npos) continue;
          EXPECT_FALSE(has(end.action, command.substr(url + 5))) << told << ": " << command;
        }
      }
      if (end.action.starts_with("installing PyTorch again")) {
        EXPECT_FALSE(fix.title.starts_with("Install PyTorch")) << told;
      }
    }
  }
}

// A release that is to be built takes the CUDA that it is to be built with, by its own configuration.
void HonestAdvice::check_sources(const Facts& at, const Advice& advice) {
  for (const Fix& fix : advice.fixes) {
    for (std::size_t i = 0; i + 1 < fix.commands.size(); ++i) {
      constexpr std::string_view kBranch = "--branch v";
      const std::size_t found = fix.commands[i].find(kBranch);
      if (found == std::string::npos || !has(fix.commands[i], "pytorch/pytorch")) continue;
      std::string release = fix.commands[i].substr(found + kBranch.size());
      release.resize(release.find(' '));
      const Version cuda = version_after(fix.commands[i + 1], "/usr/local/cuda-");
      ++sources_;
      ASSERT_TRUE(cuda.known()) << described(at) << ": " << fix.commands[i + 1];
      EXPECT_TRUE(builds_for(*find_toolkit(cuda), {*at.gpu.cc, image::Suffix::none})) << described(at);
      const bool two = compare_releases(release, "2.0") >= 0;
      EXPECT_GE(cuda, two ? Version(11, 0) : Version(10, 2)) << described(at) << ": " << release;
      if (compare_releases(release, "2.9") >= 0) {
        EXPECT_GE(cuda, (Version{12, 0})) << described(at) << ": " << release;
      }
      if (at.driver.cuda.known() && at.cause == Cause::driver_too_old) {
        EXPECT_LE(cuda.major, at.driver.cuda.major) << described(at);
      }
    }
  }
}

void HonestAdvice::expect_enough() const {
  EXPECT_GT(fine_, 1000U);
  EXPECT_GT(contradicted_, 1000U);
  EXPECT_GT(served_, 100U);
  EXPECT_GT(dead_ends_, 10000U);
  EXPECT_GT(sources_, 100U);
}

}  // namespace kshim::test
