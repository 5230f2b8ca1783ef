// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/call_args.h"
#include "failure/launch_syntax.h"
#include "fatbin_builder.h"
#include "track/fatbin_registry.h"

namespace kshim::shim {
namespace {

using kshim::image::FatbinWrapper;

struct Program {
  FatbinWrapper wrapper{image::kWrapperMagic, 1, 0, 0};
  void* slot = nullptr;
  abi::FatbinHandle handle() { return &slot; }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(&wrapper); }
};

std::vector<std::string_view> names_of(std::uintptr_t fatbin, bool& complete) {
  KernelNames kernels;
  registered_kernels(fatbin, kernels);
  complete = kernels.complete;
  std::vector<std::string_view> out(kernels.all().begin(), kernels.all().end());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Registration, NamesTheKernelOfAHostStubAndTheKernelsOfAFatbin) {
  Program one, two;
  one.wrapper.fatbin = 0x10000;
  two.wrapper.fatbin = 0x20000;
  registered::fatbin(one.handle(), one.address());
  registered::kernel(one.handle(), 0x401000, "_Z1av");
  registered::kernel(one.handle(), 0x402000, "_Z1bv");
  registered::fatbin(two.handle(), two.address());
  registered::kernel(two.handle(), 0x403000, "_Z1cv");

  EXPECT_EQ(registered_kernel(0x402000).kernel, "_Z1bv");
  EXPECT_EQ(registered_kernel(0x402000).wrapper, one.address());
  EXPECT_EQ(registered_kernel(0x403000).wrapper, two.address());
  EXPECT_TRUE(registered_kernel(0x404000).kernel.empty());
  bool complete = false;
  EXPECT_EQ(names_of(0x10000, complete), (std::vector<std::string_view>{"_Z1av", "_Z1bv"}));
  EXPECT_TRUE(complete);
  EXPECT_TRUE(names_of(0x30000, complete).empty());
  EXPECT_FALSE(complete);
}

TEST(Registration, AnUnregisteredFatbinTakesItsKernelsAlong) {
  Program gone;
  gone.wrapper.fatbin = 0x40000;
  registered::fatbin(gone.handle(), gone.address());
  registered::kernel(gone.handle(), 0x501000, "_Z4gonev");
  registered::fatbin_gone(gone.handle());
  EXPECT_TRUE(registered_kernel(0x501000).kernel.empty());
  bool complete = true;
  EXPECT_TRUE(names_of(0x40000, complete).empty());

  // The same library loaded again, at the same place.
  Program back;
  back.wrapper.fatbin = 0x40000;
  registered::fatbin(back.handle(), back.address());
  registered::kernel(back.handle(), 0x501000, "_Z4backv");
  EXPECT_EQ(registered_kernel(0x501000).kernel, "_Z4backv");
  EXPECT_EQ(names_of(0x40000, complete), std::vector<std::string_view>{"_Z4backv"});
  EXPECT_TRUE(complete);
}

TEST(Registration, KernelsOfSeveralFatbinsMayComeByTurns) {
  Program one, two;
  one.wrapper.fatbin = 0x70000;
  two.wrapper.fatbin = 0x80000;
  registered::fatbin(one.handle(), one.address());
  registered::fatbin(two.handle(), two.address());
  registered::kernel(one.handle(), 0x701000, "_Z1av");
  registered::kernel(two.handle(), 0x801000, "_Z1cv");
  registered::kernel(one.handle(), 0x702000, "_Z1bv");
  bool complete = false;
  EXPECT_EQ(names_of(0x70000, complete), (std::vector<std::string_view>{"_Z1av", "_Z1bv"}));
  EXPECT_TRUE(complete);
  EXPECT_EQ(registered_kernel(0x801000).wrapper, two.address());
  // The one in the middle goes; what stands around it stays what it is.
  registered::fatbin_gone(one.handle());
  EXPECT_TRUE(registered_kernel(0x701000).kernel.empty());
  EXPECT_TRUE(registered_kernel(0x702000).kernel.empty());
  EXPECT_EQ(registered_kernel(0x801000).kernel, "_Z1cv");
  registered::fatbin_gone(two.handle());
  EXPECT_TRUE(registered_kernel(0x801000).kernel.empty());
}

// One library stays while others come and go around it, more often than any table is long.
class ManyLoads : public ::testing::TestWithParam<std::size_t> {};
// With few kernels the table of fatbins is full first, with many that of kernels.
INSTANTIATE_TEST_SUITE_P(Kernels, ManyLoads, ::testing::Values(1, 12));

TEST_P(ManyLoads, LeaveRoomForMore) {
  constexpr std::size_t kRounds = 70000;  // twice the room for fatbins
  const std::size_t kernels = GetParam();
  Program stays;
  stays.wrapper.fatbin = 0x90000;
  registered::fatbin(stays.handle(), stays.address());
  registered::kernel(stays.handle(), 0x901000, "_Z4stayv");
  Program turns[2];
  for (std::size_t round = 0; round < kRounds; ++round) {
    // The older of two goes only when the younger is there: what is last is never what goes.
    Program& program = turns[round % 2];
    if (round >= 2) registered::fatbin_gone(program.handle());
    program.wrapper.fatbin = 0x1000000 + round * 0x100;
    registered::fatbin(program.handle(), program.address());
    for (std::size_t i = 0; i < kernels; ++i)
      registered::kernel(program.handle(), 0x2000000 + round * 0x100 + i * 0x10, "_Z4turnv");
    if (round < 2) continue;
    ASSERT_EQ(registered_kernel(0x2000000 + round * 0x100 + (kernels - 1) * 0x10).wrapper, program.address())
        << round;
    ASSERT_EQ(registered_kernel(0x2000000 + (round - 1) * 0x100).wrapper, turns[(round + 1) % 2].address())
        << round;
    ASSERT_TRUE(registered_kernel(0x2000000 + (round - 2) * 0x100).kernel.empty()) << round;
    ASSERT_EQ(registered_kernel(0x901000).kernel, "_Z4stayv") << round;
  }
  bool complete = false;
  EXPECT_EQ(names_of(0x1000000 + (kRounds - 1) * 0x100, complete).size(), kernels);
  EXPECT_TRUE(complete);
  EXPECT_EQ(names_of(0x90000, complete), std::vector<std::string_view>{"_Z4stayv"});
  EXPECT_TRUE(complete);
  registered::fatbin_gone(turns[0].handle());
  registered::fatbin_gone(turns[1].handle());
  EXPECT_EQ(registered_kernel(0x901000).kernel, "_Z4stayv");
  registered::fatbin_gone(stays.handle());
}

TEST(LaunchSyntax, TheLaunchAfterAFailedLookUpIsNoFailureOfItsOwn) {
  Program program;
  program.wrapper.fatbin = 0x60000;
  registered::fatbin(program.handle(), program.address());
  registered::kernel(program.handle(), 0x601000, "_Z1kv");
  CallArgs look_up;
  look_up.hook = Hook::__cudaGetKernel;
  look_up.host = 0x601000;
  CallArgs launch;
  launch.hook = Hook::__cudaLaunchKernel;
  launch.handle = 0x601000;
  EXPECT_TRUE(complete_launch(look_up));
  EXPECT_FALSE(complete_launch(launch));
  // The next one is: the stub asks for its kernel only once.
  launch.host = 0;
  EXPECT_TRUE(complete_launch(launch));
  EXPECT_EQ(launch.host, 0x601000U);
  CallArgs other = launch;
  other.hook = Hook::cudaLaunchKernel;
  EXPECT_TRUE(complete_launch(other));
}

}  // namespace
}  // namespace kshim::shim
