// SPDX-License-Identifier: Apache-2.0
// The driver's error log: entry point, thread, code, kernel and GPU of what it refused, and which refusal no
// other one of its thread follows.
#include "analyzer/verbs/driver_witness.h"

#include <gtest/gtest.h>

#include "tests/support/command_names.h"

namespace {

using namespace kshim::test;

std::string refused(int thread, std::string_view kernel) {
  const std::string head = fmt::format("[12:00:01.123][{}][CUDA][E] ", thread);
  return head + "No device code available for GPU ISA 75\n" + head +
         fmt::format("Kernel ({}) cannot be found in library due to compilation error\n", kernel) + head +
         "Returning 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) from cuLibraryGetKernel\n";
}

TEST(DriverWitness, TheLastRefusalOfAThreadDecides) {
  for (const bool first : {false, true}) {
    const std::string log = first ? refused(7, "ended") + refused(8, "other") + refused(7, "handled")
                                  : refused(7, "handled") + refused(8, "other") + refused(7, "ended");
    const std::vector<Refusal> rows = refusals_in(log);
    ASSERT_EQ(rows.size(), 3U);
    for (const Refusal& row : rows) {
      EXPECT_EQ(row.call, "cuLibraryGetKernel");
      EXPECT_EQ(row.code, 209);
      EXPECT_EQ(row.thread, row.kernel == "other" ? 8 : 7);
      ASSERT_TRUE(row.gpu);
      EXPECT_EQ(*row.gpu, (kshim::image::ComputeCapability{7, 5}));
      EXPECT_EQ(row.last, row.kernel == "other" || row.kernel == (first ? "handled" : "ended")) << row.kernel;
    }
  }
}

TEST(DriverWitness, TheSameRefusalAgainIsOneAndDecides) {
  const std::vector<Refusal> rows = refusals_in(refused(7, "one") + refused(7, "two") + refused(7, "one"));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].kernel, "one");
  EXPECT_EQ(rows[0].count, 2U);
  EXPECT_TRUE(rows[0].last);
  EXPECT_FALSE(rows[1].last);
}

TEST(DriverWitness, TheOlderFormNamesTheFunctionInEachLine) {
  const std::vector<Refusal> rows = refusals_in(
      "[12:00:01.123][7][CUDA][E][cuLibraryGetKernel] No device code available for GPU ISA 120\n"
      "[12:00:01.123][7][CUDA][E][cuLibraryGetKernel] Kernel (scale) cannot be found in library due to "
      "compilation error\n"
      "[12:00:01.124][7][CUDA][E][cuCtxGetDevice] No CUDA context is current to the calling thread\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].kernel, "scale");
  EXPECT_EQ(rows[0].call, "cuLibraryGetKernel");
  EXPECT_TRUE(rows[0].last) << "a question without a context is no refusal";
}

}  // namespace
