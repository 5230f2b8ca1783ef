// SPDX-License-Identifier: Apache-2.0
// Every toolkit against every GPU: a plan names nothing its toolkit cannot build, and what it adds serves the
// GPU.
#include "analyzer/advise/build_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "kshim/image/compute_capability.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Version;

Candidate candidate(std::string_view name, Version isa = {}) {
  const ImageKind kind = name.starts_with("sm_")    ? ImageKind::cubin
                         : name.starts_with("lto_") ? ImageKind::ltoir
                                                    : ImageKind::ptx;
  return {kind, *image::parse_arch(name), isa};
}

std::vector<Candidate> candidates(std::initializer_list<std::string_view> names) {
  std::vector<Candidate> out;
  for (const std::string_view name : names) out.push_back(candidate(name));
  return out;
}

// Lists as they are found in the wild, hard ones first.
const std::vector<std::vector<Candidate>>& lists() {
  static const std::vector<std::vector<Candidate>> all = {
      {},
      candidates({"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"}),
      candidates({"sm_50", "sm_60", "sm_70", "compute_70"}),
      candidates({"sm_90a", "compute_90a"}),
      candidates({"sm_100a", "sm_100f", "sm_120f", "sm_121a"}),
      candidates({"sm_120", "sm_120f", "compute_120", "compute_120f"}),
      candidates({"sm_120f", "compute_120"}),
      candidates({"lto_90", "compute_52"}),
      candidates({"sm_87", "sm_110f", "sm_88"}),
  };
  return all;
}

template <class Visit>
void each_plan(Visit&& visit) {
  for (const ToolkitRow& toolkit : toolkits()) {
    for (const GpuRow& gpu : gpus()) {
      for (const auto& have : lists()) {
        const auto plan = plan_build(have, gpu.cc, toolkit, {});
        if (plan) visit(toolkit, gpu, have, *plan);
      }
    }
  }
}

TEST(BuildPlan, NamesNothingItsToolkitCannotBuild) {
  std::size_t plans = 0;
  each_plan([&](const ToolkitRow& toolkit, const GpuRow&, const auto&, const BuildPlan& plan) {
    ++plans;
    EXPECT_EQ(plan.toolkit, &toolkit);
    for (const PlannedArch& row : plan.archs) {
      EXPECT_TRUE(builds_for(toolkit, row.arch)) << image::to_name(ImageKind::cubin, row.arch).view()
                                                 << " by " << image::to_name(toolkit.version).view();
      EXPECT_TRUE(row.sass || row.ptx);
    }
  });
  EXPECT_GT(plans, 1000U);
}

TEST(BuildPlan, ServesTheGpu) {
  each_plan([](const ToolkitRow& toolkit, const GpuRow& gpu, const auto&, const BuildPlan& plan) {
    std::vector<Candidate> built;
    for (const PlannedArch& row : plan.archs) {
      if (row.sass) built.push_back({ImageKind::cubin, row.arch, {}});
      if (row.ptx) built.push_back({ImageKind::ptx, row.arch, toolkit.isa});
    }
    const image::Selection got = select_image(built, {gpu.cc, toolkit.version, {}});
    EXPECT_EQ(got.choice, plan.by_ptx ? image::Choice::jit : image::Choice::sass)
        << image::to_name(gpu.cc).view() << " by " << image::to_name(toolkit.version).view() << ": "
        << arch_list(plan, ArchList::gencode);
  });
}

TEST(BuildPlan, KeepsWhatWasThere) {
  each_plan([](const ToolkitRow&, const GpuRow& gpu, const std::vector<Candidate>& have,
               const BuildPlan& plan) {
    for (const Candidate& image : have) {
      if (image.kind == ImageKind::ltoir) continue;
      const bool dropped = std::any_of(plan.dropped.begin(), plan.dropped.end(), [&](const Candidate& row) {
        return row.kind == image.kind && row.arch == image.arch;
      });
      const bool kept = std::any_of(plan.archs.begin(), plan.archs.end(), [&](const PlannedArch& row) {
        // sm_120f stands for sm_120 as well: nvcc takes only one of them.
        const bool stands_for = image.kind == ImageKind::cubin && image.arch.suffix == image::Suffix::none &&
                                row.arch == image::Arch{image.arch.cc, image::Suffix::f};
        return (row.arch == image.arch || stands_for) &&
               (image.kind == ImageKind::cubin ? row.sass : row.ptx);
      });
      EXPECT_TRUE(kept != dropped) << image::to_name(image.kind, image.arch).view() << " for "
                                   << image::to_name(gpu.cc).view();
    }
  });
}

TEST(BuildPlan, BringsPtxOfTheNewestPlainArchitecture) {
  each_plan([](const ToolkitRow&, const GpuRow&, const auto&, const BuildPlan& plan) {
    const PlannedArch* newest = nullptr;
    for (const PlannedArch& row : plan.archs) {
      if (row.arch.suffix == image::Suffix::none) newest = &row;
    }
    ASSERT_NE(newest, nullptr);
    EXPECT_TRUE(newest->ptx) << arch_list(plan, ArchList::gencode);
  });
}

TEST(BuildPlan, HasNoPlanWhereTheToolkitHasNothingForTheGpu) {
  EXPECT_FALSE(plan_build({}, {6, 1}, *find_toolkit({13, 0}), {}).has_value())
      << "13.0's oldest PTX is for 7.5";
  EXPECT_FALSE(plan_build({}, {3, 5}, *find_toolkit({12, 0}), {}).has_value());
  EXPECT_FALSE(plan_build({}, {7, 2}, *find_toolkit({13, 0}), {}).has_value())
      << "sm_75 does not serve Xavier";
}

TEST(BuildPlan, ServesAGpuYoungerThanTheToolkitByPtxThatTheDriverReads) {
  const auto plan = plan_build({}, {12, 0}, *find_toolkit({12, 4}), {13, 0});
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->by_ptx);
  EXPECT_EQ(arch_list(*plan, ArchList::gencode), "-gencode arch=compute_90,code=compute_90");
  const auto orin = plan_build({}, {8, 9}, *find_toolkit({11, 4}), {13, 0});
  EXPECT_EQ(arch_list(*orin, ArchList::cmake), "86") << "not the Jetson's sm_87";
}

TEST(BuildPlan, WritesEachStyle) {
  const auto plan =
      plan_build(candidates({"sm_75", "compute_75", "sm_90a"}), {8, 6}, *find_toolkit({13, 0}), {});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(arch_list(*plan, ArchList::gencode),
            "-gencode arch=compute_75,code=sm_75 -gencode arch=compute_75,code=compute_75 -gencode "
            "arch=compute_86,code=sm_86 "
            "-gencode arch=compute_86,code=compute_86 -gencode arch=compute_90a,code=sm_90a");
  EXPECT_EQ(arch_list(*plan, ArchList::cmake), "75;86;90a-real");
  EXPECT_EQ(arch_list(*plan, ArchList::torch), "7.5+PTX;8.6+PTX;9.0a");
  EXPECT_EQ(arch_list(*plan, ArchList::numbers), "75;86;90a");
  EXPECT_EQ(arch_list(*plan, ArchList::values),
            "arch=compute_75,code=sm_75;arch=compute_75,code=compute_75;arch=compute_86,code=sm_86;"
            "arch=compute_86,code=compute_86;arch=compute_90a,code=sm_90a");
}

TEST(BuildPlan, NeverAsksForAnArchitectureAndItsFamilyAtOnce) {
  const auto plan =
      plan_build(candidates({"sm_120", "sm_120f", "compute_120"}), {8, 6}, *find_toolkit({13, 0}), {});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(arch_list(*plan, ArchList::cmake), "86-real;120-virtual;120f-real");
  EXPECT_EQ(arch_list(*plan, ArchList::torch), "8.6;12.0+PTX") << "PyTorch knows no 12.0f";
}

// Its builder refuses a whole list for one entry that it does not know: 12.0f, 8.8.
TEST(BuildPlan, AsksPyTorchForPtxOfPlainArchitecturesOnly) {
  std::size_t lists = 0;
  each_plan([&](const ToolkitRow&, const GpuRow&, const auto&, const BuildPlan& plan) {
    const std::string list = arch_list(plan, ArchList::torch);
    ++lists;
    EXPECT_EQ(list.find("a+PTX"), std::string::npos) << list;
    EXPECT_EQ(list.find('f'), std::string::npos) << list;
    EXPECT_EQ(list.find("8.8"), std::string::npos) << list;
  });
  EXPECT_GT(lists, 1000U);
}

struct Advised {
  const char* what;
  ComputeCapability device;
  Version built_with;  ///< {0,0}: not known
  Version driver;
  Version expected;
};
constexpr Advised kAdvised[] = {
    {"Pascal after 13.0: the last that can", {6, 1}, {13, 0}, {13, 0}, {12, 9}},
    {"Pascal with a driver for 12.4", {6, 1}, {13, 0}, {12, 4}, {12, 4}},
    {"Kepler after 12.2", {3, 5}, {12, 2}, {11, 4}, {11, 4}},
    {"Blackwell after 12.4: the newest 12", {12, 0}, {12, 4}, {13, 0}, {12, 9}},
    {"Blackwell after 11.8: the newest the driver takes", {12, 0}, {11, 8}, {13, 0}, {13, 0}},
    {"a driver older than every toolkit for it", {12, 0}, {12, 4}, {12, 4}, {12, 8}},
    {"nothing known", {8, 6}, {}, {}, {13, 5}},
};

class RecommendToolkit : public ::testing::TestWithParam<Advised> {};

TEST_P(RecommendToolkit, NamesOneThatCan) {
  const Advised& row = GetParam();
  const ToolkitRow* got = recommend_toolkit(
      row.device, row.built_with.known() ? std::optional(row.built_with) : std::nullopt, row.driver);
  ASSERT_NE(got, nullptr) << row.what;
  EXPECT_EQ(image::to_name(got->version).view(), image::to_name(row.expected).view()) << row.what;
}
INSTANTIATE_TEST_SUITE_P(Table, RecommendToolkit, ::testing::ValuesIn(kAdvised));

TEST(RecommendToolkit, PrefersOneThatBuildsWhatWasThere) {
  const auto have = candidates({"sm_61", "sm_75"});
  EXPECT_EQ(recommend_toolkit({9, 0}, std::nullopt, {13, 0}, have)->version, (Version{12, 9}));
}

#ifdef KSHIM_TEST_NVCC
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  std::array<char, 4096> buffer{};
  while (pipe && std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) out += buffer.data();
  return out;
}

Version installed_toolkit() {
  const std::string text = output_of(KSHIM_TEST_NVCC " --version");
  const std::size_t at = text.find("release ");
  if (at == std::string::npos) return {};
  return image::parse_version(text.substr(at + 8, text.find(',', at) - at - 8)).value_or(Version{});
}

// The ground truth for the row of the toolkit at hand: nvcc's own list.
TEST(Nvcc, AgreesWithItsRow) {
  const ToolkitRow* row = find_toolkit(installed_toolkit());
  if (row == nullptr) GTEST_SKIP() << "nvcc is of a toolkit that toolkits.def has no row for";
  const std::string listed = output_of(KSHIM_TEST_NVCC " --list-gpu-code");
  ASSERT_NE(listed.find("sm_"), std::string::npos);
  for (const GpuRow& gpu : gpus()) {
    const image::Arch arch{gpu.cc, image::Suffix::none};
    const std::string name = std::string(image::to_name(ImageKind::cubin, arch).view()) + "\n";
    const bool has = listed.find(name) != std::string::npos;
    EXPECT_EQ(has, builds_for(*row, arch)) << name;
  }
}

TEST(Nvcc, AcceptsEveryListThatIsOffered) {
  const ToolkitRow* row = find_toolkit(installed_toolkit());
  if (row == nullptr) GTEST_SKIP() << "nvcc is of a toolkit that toolkits.def has no row for";
  const std::string source = ::testing::TempDir() + "kshim_build_plan.cu";
  std::fclose(std::fopen(source.c_str(), "w"));
  std::size_t asked = 0;
  for (const GpuRow& gpu : gpus()) {
    for (const auto& have : lists()) {
      const auto plan = plan_build(have, gpu.cc, *row, {});
      if (!plan) continue;
      ++asked;
      const std::string list = arch_list(*plan, ArchList::gencode);
      const std::string said =
          output_of(KSHIM_TEST_NVCC " --dryrun -fatbin -o /dev/null " + list + " " + source + " 2>&1");
      EXPECT_EQ(said.find("nvcc fatal"), std::string::npos) << list << "\n" << said;
      EXPECT_NE(said.find("fatbinary"), std::string::npos) << list << "\n" << said;
    }
  }
  EXPECT_GT(asked, 50U);
  std::remove(source.c_str());
}
#endif

}  // namespace
}  // namespace kshim::test
