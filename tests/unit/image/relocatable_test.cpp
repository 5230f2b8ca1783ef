// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/relocatable.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "select_case.h"

namespace kshim::image {
namespace {

using Part = std::vector<Candidate>;
using Names = std::set<std::string>;

Part part_of(const std::vector<std::string>& names) {
  Part out;
  for (const std::string& name : names) out.push_back(table::candidate_of(name));
  return out;
}

/// "part: name of the image", for each that is taken.
Names linkable(const std::vector<Part>& parts) {
  std::set<Arch> levels;
  for (const Part& part : parts)
    for (const Candidate& image : part)
      if (image.kind == ImageKind::ptx) levels.insert(image.arch);
  const std::vector<Arch> ascending(levels.begin(), levels.end());
  Names out;
  each_linkable_ptx(
      std::span(ascending),
      [&](const auto& visit) {
        for (const Part& part : parts)
          if (!visit(std::span<const Candidate>(part))) return;
      },
      [&](std::size_t part, std::size_t image) {
        const Candidate& taken = parts.at(part).at(image);
        out.insert(std::to_string(part) + ": " + std::string(to_name(taken.kind, taken.arch).view()));
      });
  return out;
}

const Part kDeviceRuntime = part_of({"sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_121", "sm_121"});

TEST(Relocatable, TakesThePtxOfAllParts) {
  EXPECT_EQ(linkable({part_of({"sm_80", "compute_80"}), part_of({"compute_80"})}),
            Names({"0: compute_80", "1: compute_80"}));
  EXPECT_EQ(linkable({part_of({"compute_75", "compute_90"}), part_of({"compute_75", "compute_90"})}),
            Names({"0: compute_75", "0: compute_90", "1: compute_75", "1: compute_90"}));
}

TEST(Relocatable, APartWithoutPtxLeavesNone) {
  EXPECT_EQ(linkable({part_of({"sm_90"}), part_of({"compute_121"})}), Names());
  EXPECT_EQ(linkable({part_of({"sm_90"}), kDeviceRuntime}), Names());
  EXPECT_EQ(linkable({part_of({"lto_90"}), part_of({"compute_90"})}), Names());
}

TEST(Relocatable, AnEmptyPartIsNone) {
  EXPECT_EQ(linkable({part_of({"compute_90"}), {}}), Names({"0: compute_90"}));
  EXPECT_EQ(linkable({{}, part_of({"compute_90"})}), Names({"1: compute_90"}));
  EXPECT_EQ(linkable({{}, {}}), Names());
}

TEST(Relocatable, ALibrarysPtxIsLinkedWhereItsCubinsEnd) {
  EXPECT_EQ(linkable({part_of({"sm_90", "compute_90"}), kDeviceRuntime}),
            Names({"0: compute_90", "1: compute_121"}));
  // cuFFTMp 12.1 with NVSHMEM's device library.
  const Part nvshmem = part_of({"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "compute_120", "sm_120"});
  EXPECT_EQ(linkable({part_of({"sm_100", "sm_120", "compute_75", "sm_75", "compute_86"}), nvshmem, nvshmem}),
            Names({"0: compute_75", "0: compute_86", "1: compute_120", "2: compute_120"}));
}

TEST(Relocatable, TheNewestOfThePartsDecides) {
  EXPECT_EQ(linkable({part_of({"compute_75", "compute_90"}), part_of({"compute_90"})}),
            Names({"0: compute_90", "1: compute_90"}));
  EXPECT_EQ(linkable({part_of({"compute_90"}), part_of({"compute_75"})}),
            Names({"0: compute_90", "1: compute_75"}));
}

}  // namespace
}  // namespace kshim::image
