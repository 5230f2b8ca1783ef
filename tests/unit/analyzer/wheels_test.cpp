// SPDX-License-Identifier: Apache-2.0
// The tables of prebuilt packages and of libraries with lists of GPUs of their own: every row is consistent
// with the GPUs and toolkits, and the look-ups find what people ask for by the names that they use.
#include "analyzer/data/wheels.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

#include "analyzer/data/knowledge.h"
#include "analyzer/data/reach.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::Choice;
using image::ComputeCapability;

std::string at(const WheelRow& row) {
  return std::string(row.distribution) + " " + std::string(row.first) + " " + std::string(row.variant) + " " +
         std::string(row.platform);
}

TEST(Wheels, NameOnlyArchitecturesThatAGpuAndAToolkitKnow) {
  ASSERT_GT(wheels().size(), 100U);
  for (const WheelRow& row : wheels()) {
    ASSERT_FALSE(row.images.empty()) << at(row);
    EXPECT_EQ(row.images.front().kind, image::ImageKind::cubin) << at(row);
    for (const image::Candidate& image : row.images) {
      EXPECT_NE(find_gpu(image.arch.cc), nullptr) << at(row);
      // 10.7 is older knowledge than the newest toolkit of the table.
      if (image.arch.cc == ComputeCapability{10, 7}) continue;
      EXPECT_NE(first_toolkit_for(image.arch), nullptr)
          << at(row) << " " << image::to_name(image.kind, image.arch).view();
    }
  }
}

TEST(Wheels, NameReleasesInOrderAndKnownPlatforms) {
  const std::set<std::string_view> platforms = {"linux x86_64", "linux aarch64", "windows x86_64",
                                                "windows aarch64"};
  for (const WheelRow& row : wheels()) {
    EXPECT_TRUE(platforms.count(row.platform) != 0) << at(row);
    EXPECT_GE(row.first.find_first_not_of("0123456789."), row.first.size()) << at(row);
    EXPECT_GE(row.last.find_first_not_of("0123456789."), row.last.size()) << at(row);
    EXPECT_TRUE(is_within(row.first, row.first, row.last)) << at(row);
    EXPECT_EQ(wheel_name(row.distribution).distribution, row.distribution);
  }
  for (const WheelDefaultRow& row : wheel_defaults())
    EXPECT_NE(find_wheel(row.distribution, row.first, row.variant, row.platform), nullptr)
        << row.distribution << " " << row.first;
}

TEST(Wheels, SayWhichOfTheirReleasesSomebodyLookedInto) {
  WheelRow row;
  row.basis = Basis::interpolated;
  row.wheels = "0.43.3 0.44.1 2.25.1.post1";
  EXPECT_EQ(basis_of(row, "0.44.1"), Basis::measured);
  EXPECT_EQ(basis_of(row, "0.44"), Basis::measured);
  EXPECT_EQ(basis_of(row, "2.25.1"), Basis::measured);
  EXPECT_EQ(basis_of(row, "0.44.0"), Basis::interpolated);
  EXPECT_EQ(basis_of(row, "0.45"), Basis::interpolated);
  row.basis = Basis::measured;
  EXPECT_EQ(basis_of(row, "0.44.2"), Basis::interpolated) << "a patch release that came later";
  row.basis = Basis::documented;
  EXPECT_EQ(basis_of(row, "0.44.0"), Basis::documented);
}

TEST(Wheels, NeverOverlap) {
  for (const WheelRow& a : wheels()) {
    for (const WheelRow& b : wheels()) {
      if (&a >= &b || a.distribution != b.distribution || a.variant != b.variant || a.platform != b.platform)
        continue;
      EXPECT_FALSE(is_within(b.first, a.first, a.last) || is_within(a.first, b.first, b.last))
          << at(a) << " and " << at(b);
    }
  }
}

// A build for CUDA 12 cannot hold what CUDA 12.9 cannot make.
TEST(Wheels, HoldWhatTheirCudaCanBuild) {
  for (const WheelRow& row : wheels()) {
    if (!row.variant.starts_with("cu") || row.variant.size() < 5) continue;
    const bool coarse = row.variant.starts_with("cuda");
    const unsigned number =
        static_cast<unsigned>(std::stoul(std::string(row.variant.substr(coarse ? 4 : 2))));
    for (const image::Candidate& image : row.images) {
      bool can = image.arch.cc == ComputeCapability{10, 7};
      for (const ToolkitRow& toolkit : toolkits()) {
        const unsigned major = coarse && number < 20 ? number : number / 10;
        const bool same = coarse ? toolkit.version.major == major
                                 : toolkit.version == image::Version{static_cast<std::uint16_t>(number / 10),
                                                                     static_cast<std::uint16_t>(number % 10)};
        // A toolkit newer than the table builds what its newest does.
        can = can || (same && builds_for(toolkit, image.arch)) ||
              (&toolkit == &toolkits().back() && number / 10 == 13 && builds_for(toolkit, image.arch));
      }
      EXPECT_TRUE(can) << at(row) << " " << image::to_name(image.kind, image.arch).view();
    }
  }
}

// What is built from the source of a release is built with a CUDA that it was published for.
TEST(Wheels, AreOfACudaThatTheirSourceTakes) {
  std::size_t checked = 0;
  for (const WheelRow& row : wheels()) {
    unsigned cuda = 0;
    if (row.variant.size() != 5 || !row.variant.starts_with("cu") || row.last == "0") continue;
    std::from_chars(row.variant.data() + 2, row.variant.data() + 5, cuda);
    for (const std::string_view release : {row.first, row.last}) {
      const image::Version least = oldest_cuda_of(row.distribution, release);
      if (!least.known()) continue;
      ++checked;
      EXPECT_GE(cuda, least.major * 10U + least.minor)
          << row.distribution << " " << release << " " << row.variant;
    }
  }
  EXPECT_GT(checked, 40U);
}

TEST(Releases, CompareAsPeopleNumberThem) {
  EXPECT_LT(compare_releases("2.9", "2.10"), 0);
  EXPECT_EQ(compare_releases("2.9", "2.9.0"), 0);
  EXPECT_GT(compare_releases("0.0.28.post3", "0.0.28"), 0);
  EXPECT_EQ(compare_releases("2.9.1+cu126", "2.9.1"), 0);
  EXPECT_EQ(compare_releases("2.15.0rc1", "2.15.0"), 0);
  EXPECT_TRUE(is_within("2.10.1", "2.9", "2.10"));
  EXPECT_FALSE(is_within("2.11.0", "2.9", "2.10"));
  EXPECT_TRUE(is_within("99", "2.9", "0"));
  EXPECT_FALSE(is_within("", "0.1", "0"));
  EXPECT_FALSE(is_within("unknown", "0.1", "0"));
  EXPECT_FALSE(is_within("99999999999999999999.1", "1.0", "2.0"));
}

TEST(Wheels, AreFoundByWhatIsWrittenInAReport) {
  const auto real = [](std::string_view package, std::string_view version, std::string_view variant = {},
                       std::string_view platform = kLinux) {
    const WheelRow* row = find_wheel(package, version, variant, platform);
    std::string out;
    for (const image::Candidate& image : row != nullptr ? row->images : std::vector<image::Candidate>())
      if (image.kind == image::ImageKind::cubin)
        out +=
            (out.empty() ? "" : " ") + std::string(image::to_name(image.kind, image.arch).view()).substr(3);
    return row != nullptr ? out : "none";
  };
  EXPECT_EQ(real("torch", "2.9.1+cu128"), "70 75 80 86 90 100 120");
  EXPECT_EQ(real("torch", "2.9.1"), "70 75 80 86 90 100 120") << "PyPI's is cu128";
  EXPECT_EQ(real("Torch", "2.9.1", "cu126"), "50 60 70 75 80 86 90");
  EXPECT_EQ(real("torch", "2.15.0"), "75 80 86 90 100 120");
  EXPECT_EQ(real("torch", "2.14.0", "cu126"), "50 60 70 75 80 86 90");
  EXPECT_EQ(real("torch", "2.15.0", "cu126"), "none") << "2.14 is the last with CUDA 12.6";
  EXPECT_EQ(real("torch", "2.9.1", "cu130", "linux aarch64"), "80 90 100 110 120");
  EXPECT_EQ(real("torch", "2.9.1", "cu121"), "none") << "there was none";
  EXPECT_EQ(real("torch", "2.9.1", "cpu"), "none");
  EXPECT_EQ(real("torch", "1.0"), "none");
  EXPECT_EQ(real("torch-scatter", "2.9.1"), "none");
  EXPECT_EQ(real("torch-quickfps-cu130", "2.1.0"), "none");
  EXPECT_EQ(real("cupy-cuda13x", "14.2.0"), "75 80 86 89 90 100f 120f");
  EXPECT_EQ(real("cupy_cuda12x", "14.0"), "50 52 60 61 70 75 80 86 89 90 100f 120f");
  EXPECT_EQ(real("jax-cuda13-plugin", "0.8.1"), "75 80 90 100 120");
  EXPECT_EQ(real("onnxruntime-gpu", "1.31.1"), "75 80 86 89 90a 120a");
  EXPECT_EQ(real("xformers", "0.0.32.post2", "cu128"), "75 80 90a");
  EXPECT_EQ(real("bitsandbytes", "0.50.2", "cu128"), "70 75 80 86 89 90 100 120");
  EXPECT_EQ(real("nvidia-nccl-cu13", "2.30.7"), "75 80 90 100 110 120");
  EXPECT_EQ(real("flash_attn", "2.8.3"), "80 90 100 120");
  EXPECT_EQ(real("", ""), "none");
}

TEST(Wheels, ServeByTheRulesThatHoldForFiles) {
  const auto newest = [](std::string_view distribution, ComputeCapability cc,
                         std::string_view platform = kLinux) {
    auto rows = wheels_serving(distribution, cc, platform);
    std::erase_if(rows, [&](const WheelRow* row) { return last_with_companions(*row, cc).empty(); });
    return rows.empty() ? std::string("none")
                        : std::string(rows.front()->last) + " " + std::string(rows.front()->variant);
  };
  EXPECT_EQ(newest("torch", {6, 1}), "2.14 cu126");
  EXPECT_EQ(newest("torch", {3, 7}), "2.5 cu118") << "the cuDNN of 2.4 and later serves no Kepler";
  EXPECT_EQ(newest("torch", {3, 5}), "1.2 cu100") << "the last that PyPI has";
  EXPECT_EQ(newest("torch", {8, 7}), "none")
      << "a Jetson does not run sm_80; the cuDNN beside the PTX of 1.5 is too old";
  EXPECT_EQ(newest("torch", {11, 0}), "none");
  EXPECT_EQ(newest("torch", {11, 0}, "linux aarch64").substr(0, 5), "2.15 ");
  EXPECT_EQ(newest("torch-scatter", {8, 0}), "none");
  for (const WheelRow* row : wheels_serving("torch", {12, 0})) {
    EXPECT_NE(serves(*row, {12, 0}), Choice::none);
    if (last_with_companions(*row, {12, 0}).empty()) continue;
    EXPECT_GE(compare_releases(row->last, "2.7"), 0) << at(*row);
  }
  EXPECT_EQ(serves(*find_wheel("xformers", "0.0.30", "cu126"), {12, 0}), Choice::jit);
  EXPECT_EQ(serves(*find_wheel("torch", "2.9.1", "cu126"), {12, 0}), Choice::none) << "no PTX";
  EXPECT_EQ(serves(*find_wheel("torch", "2.9.1", "cu126"), {8, 9}), Choice::sass) << "by sm_86";
}

TEST(LibrarySupport, SaysWhichReleasesServeAGpu) {
  EXPECT_EQ(library_supports("cuDNN", "9.10.2", {6, 1}), Support::yes);
  EXPECT_EQ(library_supports("cudnn", "9.11.0", {6, 1}), Support::too_old_gpu);
  EXPECT_EQ(library_supports("cuDNN", "9.1.0", {12, 0}), Support::too_new_gpu);
  EXPECT_EQ(library_supports("cuDNN", "9.26.0.51", {12, 1}), Support::yes);
  EXPECT_EQ(library_supports("TensorRT", "10.4.0", {7, 0}), Support::yes);
  EXPECT_EQ(library_supports("TensorRT", "10.5", {7, 0}), Support::too_old_gpu);
  EXPECT_EQ(library_supports("TensorRT", "10.7.0.post1", {12, 0}), Support::too_new_gpu);
  EXPECT_EQ(library_supports("TensorRT", "9.2", {7, 0}), std::nullopt);
  EXPECT_EQ(library_supports("no such", "1.0", {7, 0}), std::nullopt);
  EXPECT_EQ(last_library_for("TensorRT", {3, 7})->last, "8.5");
  EXPECT_EQ(first_library_for("TensorRT", {8, 9})->first, "8.5");
  EXPECT_EQ(first_library_for("TensorRT", {12, 0})->first, "10.8");
  EXPECT_EQ(last_library_for("cuDNN", {7, 0})->last, "9.10");
  EXPECT_EQ(last_library_for("TensorRT", {2, 0}), nullptr);
  for (const LibrarySupportRow& row : library_support()) {
    EXPECT_NE(find_gpu(row.min), nullptr) << row.library << " " << row.first;
    EXPECT_TRUE(row.max.major == 0 || find_gpu(row.max) != nullptr) << row.library << " " << row.first;
    EXPECT_TRUE(row.max.major == 0 || row.min <= row.max) << row.library << " " << row.first;
    EXPECT_TRUE(is_within(row.first, row.first, row.last)) << row.library << " " << row.first;
    for (const LibrarySupportRow& other : library_support()) {
      EXPECT_TRUE(&row == &other || row.library != other.library ||
                  !is_within(row.first, other.first, other.last))
          << row.library << " " << row.first;
    }
  }
}

TEST(Pythons, RowsAreInOrderAndNameReleases) {
  for (const PythonRow& row : pythons()) {
    EXPECT_EQ(python_of_path(fmt::format("/usr/bin/python{}", row.python)), row.python);
    EXPECT_EQ(find_python(row.distribution, row.python), &row);
    EXPECT_TRUE(is_within(row.first, row.first, row.last)) << row.python;
  }
  EXPECT_EQ(oldest_python("torch", "2.15"), "3.11");
  EXPECT_EQ(oldest_python("torch", "2.8"), "3.9");
  EXPECT_EQ(oldest_python("cupy", "14.2"), "") << "not known";
}

TEST(Pythons, PathsTell) {
  EXPECT_EQ(python_of_path("/v/lib/python3.8/site-packages/torch/lib/libtorch_cuda.so"), "3.8");
  EXPECT_EQ(python_of_path("/opt/python3.12/lib/python3.9/x.so"), "3.9");
  for (const char* none :
       {"", "/usr/bin/python3", "/usr/bin/python3.", "/usr/lib/python3.1234/x", "/usr/bin/python3.9m"})
    EXPECT_EQ(python_of_path(none), "") << none;
}

}  // namespace
}  // namespace kshim::test
