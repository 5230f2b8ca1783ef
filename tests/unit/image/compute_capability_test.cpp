// SPDX-License-Identifier: Apache-2.0
// knowledge/gpus.json and toolkits.json: the rows, and what is answered where there is no row.
#include "kshim/image/compute_capability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fatbin_builder.h"
#include "kshim/image/select.h"

namespace kshim::image {
namespace {

using test::arch_of;

const std::vector<unsigned> kNumbers = {
#define KSHIM_CC(major, minor, ...) (major) * 10U + (minor),
#include "kshim/knowledge/gpus.def"
};

ComputeCapability cc_of(unsigned number) { return ComputeCapability::from_number(number); }

TEST(ComputeCapabilityRows, AscendAndAreFound) {
  EXPECT_TRUE(std::is_sorted(kNumbers.begin(), kNumbers.end()));
  EXPECT_EQ(std::adjacent_find(kNumbers.begin(), kNumbers.end()), kNumbers.end());
  for (const unsigned number : kNumbers) {
    const ComputeCapabilityInfo* info = find_compute_capability(cc_of(number));
    ASSERT_NE(info, nullptr) << number;
    EXPECT_EQ(info->cc, cc_of(number));
    EXPECT_TRUE(info->first_toolkit.known()) << number;
    if (info->last_toolkit.known()) {
      EXPECT_LE(info->first_toolkit, info->last_toolkit) << number;
    }
  }
  EXPECT_EQ(find_compute_capability(cc_of(91)), nullptr);
  EXPECT_EQ(find_compute_capability({}), nullptr);
}

// CUDA C++ Programming Guide, Binary Compatibility: the integrated GPUs of Jetson and Drive.
TEST(ComputeCapabilityRows, TegraIsExactlyThese) {
  const std::vector<unsigned> tegra = {32, 53, 62, 72, 87, 101, 110};
  for (const unsigned number : kNumbers)
    EXPECT_EQ(is_tegra(cc_of(number)), std::find(tegra.begin(), tegra.end(), number) != tegra.end())
        << number;
  EXPECT_FALSE(is_tegra(cc_of(187)));
}

// CUDA C++ Programming Guide 13.0, 5.1.2.3, table 28, with 10.1 of CUDA 12.9 and 10.7 of 13.4.
TEST(Family, IsExactlyTheDocumentedTable) {
  const std::vector<std::pair<unsigned, unsigned>> table = {{100, 100}, {100, 103}, {100, 107}, {101, 101},
                                                            {103, 103}, {103, 107}, {107, 107}, {110, 110},
                                                            {120, 120}, {120, 121}, {121, 121}};
  for (const unsigned image : {100U, 101U, 103U, 107U, 110U, 120U, 121U})
    for (const unsigned device : kNumbers)
      EXPECT_EQ(in_family(cc_of(image), cc_of(device)),
                std::find(table.begin(), table.end(), std::pair{image, device}) != table.end())
          << image << "f on " << device;
}

TEST(Family, GrowsUpwardsInsideItsMajorBeyondTheTable) {
  EXPECT_TRUE(in_family(cc_of(120), cc_of(125)));
  EXPECT_FALSE(in_family(cc_of(120), cc_of(130)));
  EXPECT_TRUE(in_family(cc_of(130), cc_of(132)));
  EXPECT_FALSE(in_family(cc_of(132), cc_of(130)));
  EXPECT_FALSE(in_family(cc_of(130), cc_of(140)));
}

TEST(Toolkits, DropWhatTheReleaseNotesSay) {
  struct Line {
    unsigned number;
    Version cuda;
    bool dropped;
  };
  for (const Line& line : {Line{35, {11, 8}, false}, Line{35, {12, 0}, true}, Line{61, {12, 9}, false},
                           Line{61, {13, 0}, true}, Line{70, {13, 0}, true}, Line{75, {13, 4}, false},
                           Line{101, {12, 9}, false}, Line{101, {13, 0}, true}, Line{199, {99, 0}, false}})
    EXPECT_EQ(dropped_by(cc_of(line.number), line.cuda), line.dropped) << line.number;
}

TEST(PtxTargets, HaveTheirFirstIsa) {
  EXPECT_EQ(first_isa_of(arch_of(75)), (Version{6, 3}));
  EXPECT_EQ(first_isa_of(arch_of(90)), (Version{7, 8}));
  EXPECT_EQ(first_isa_of(arch_of(90, Suffix::a)), (Version{8, 0}));
  EXPECT_EQ(first_isa_of(arch_of(100, Suffix::f)), (Version{8, 8}));
  EXPECT_EQ(first_isa_of(arch_of(121)), (Version{8, 8}));
  EXPECT_FALSE(first_isa_of(arch_of(90, Suffix::f)).known());
  EXPECT_FALSE(first_isa_of(arch_of(990)).known());
}

TEST(PtxIsa, FollowsTheToolkits) {
  EXPECT_EQ(ptx_isa_of_cuda({13, 0}), (Version{9, 0}));
  EXPECT_EQ(ptx_isa_of_cuda({12, 9}), (Version{8, 8}));
  EXPECT_EQ(ptx_isa_of_cuda({12, 5}), ptx_isa_of_cuda({12, 6}));
  EXPECT_EQ(ptx_isa_of_cuda({8, 0}), (Version{5, 0}));
  EXPECT_EQ(ptx_isa_of_cuda({10, 9}), (Version{6, 5}));  // between two rows: the older one
  EXPECT_FALSE(ptx_isa_of_cuda({7, 5}).known());
  EXPECT_FALSE(ptx_isa_of_cuda({99, 0}).known());
  EXPECT_EQ(cuda_of_ptx_isa({8, 5}), (Version{12, 5}));
  EXPECT_EQ(cuda_of_ptx_isa({9, 0}), (Version{13, 0}));
  EXPECT_FALSE(cuda_of_ptx_isa({8, 9}).known());
}

TEST(PtxIsa, RowsAscend) {
  const std::vector<std::pair<Version, Version>> rows = {
#define KSHIM_PTX_ISA(cuda_major, cuda_minor, isa_major, isa_minor) \
  {Version{cuda_major, cuda_minor}, Version{isa_major, isa_minor}},
#include "kshim/knowledge/toolkits.def"
  };
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i - 1].first, rows[i].first);
    EXPECT_LE(rows[i - 1].second, rows[i].second);
  }
  for (const auto& [cuda, isa] : rows) EXPECT_EQ(ptx_isa_of_cuda(cuda), isa);
}

}  // namespace
}  // namespace kshim::image
