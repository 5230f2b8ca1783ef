// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

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

void add_fatbin(Program& program) {
  add_registration(fatbin_registration(program.handle(), program.address()));
}
void add_kernel(Program& program, std::uintptr_t host, const char* name) {
  add_registration({program.handle(), host, 0, name});
}
void remove(Program& program) { add_registration({program.handle(), 0, 0, nullptr}); }
Registered find(std::uintptr_t host) { return find_registered(host); }

std::vector<std::string_view> names_of(std::uintptr_t fatbin, bool& complete) {
  KernelNames kernels;
  list_registered(fatbin, kernels);
  complete = kernels.complete;
  std::vector<std::string_view> out(kernels.all().begin(), kernels.all().end());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Registration, NamesTheKernelOfAHostStubAndTheKernelsOfAFatbin) {
  Program one, two;
  one.wrapper.fatbin = 0x10000;
  two.wrapper.fatbin = 0x20000;
  add_fatbin(one);
  add_kernel(one, 0x401000, "_Z1av");
  add_kernel(one, 0x402000, "_Z1bv");
  add_fatbin(two);
  add_kernel(two, 0x403000, "_Z1cv");

  EXPECT_EQ(find(0x402000).kernel, "_Z1bv");
  EXPECT_EQ(find(0x402000).wrapper, one.address());
  EXPECT_EQ(find(0x403000).wrapper, two.address());
  EXPECT_TRUE(find(0x404000).kernel.empty());
  bool complete = false;
  EXPECT_EQ(names_of(0x10000, complete), (std::vector<std::string_view>{"_Z1av", "_Z1bv"}));
  EXPECT_TRUE(complete);
  EXPECT_TRUE(names_of(0x30000, complete).empty());
  EXPECT_FALSE(complete);
}

TEST(Registration, AnUnregisteredFatbinTakesItsKernelsAlong) {
  Program gone;
  gone.wrapper.fatbin = 0x40000;
  add_fatbin(gone);
  add_kernel(gone, 0x501000, "_Z4gonev");
  remove(gone);
  EXPECT_TRUE(find(0x501000).kernel.empty());
  bool complete = true;
  EXPECT_TRUE(names_of(0x40000, complete).empty());

  // The same library loaded again, at the same place.
  Program back;
  back.wrapper.fatbin = 0x40000;
  add_fatbin(back);
  add_kernel(back, 0x501000, "_Z4backv");
  EXPECT_EQ(find(0x501000).kernel, "_Z4backv");
  EXPECT_EQ(names_of(0x40000, complete), std::vector<std::string_view>{"_Z4backv"});
  EXPECT_TRUE(complete);
}

TEST(Registration, KernelsOfSeveralFatbinsMayComeByTurns) {
  Program one, two;
  one.wrapper.fatbin = 0x70000;
  two.wrapper.fatbin = 0x80000;
  add_fatbin(one);
  add_fatbin(two);
  add_kernel(one, 0x701000, "_Z1av");
  add_kernel(two, 0x801000, "_Z1cv");
  add_kernel(one, 0x702000, "_Z1bv");
  bool complete = false;
  EXPECT_EQ(names_of(0x70000, complete), (std::vector<std::string_view>{"_Z1av", "_Z1bv"}));
  EXPECT_TRUE(complete);
  EXPECT_EQ(find(0x801000).wrapper, two.address());
  // The one in the middle goes; what stands around it stays what it is.
  remove(one);
  EXPECT_TRUE(find(0x701000).kernel.empty());
  EXPECT_TRUE(find(0x702000).kernel.empty());
  EXPECT_EQ(find(0x801000).kernel, "_Z1cv");
  remove(two);
  EXPECT_TRUE(find(0x801000).kernel.empty());
}

TEST(Registration, KernelsAreListedInTheirOrderAndCounted) {
  Program many;
  many.wrapper.fatbin = 0xA0000;
  add_fatbin(many);
  static char names[KernelNames::kMax + 5][8];
  for (std::size_t i = 0; i < std::size(names); ++i) {
    std::snprintf(names[i], sizeof names[i], "k%zu", i);
    add_kernel(many, 0xA01000 + i * 16, names[i]);
  }
  KernelNames kernels;
  list_registered(0xA0000, kernels);
  EXPECT_EQ(kernels.total, std::size(names));
  EXPECT_EQ(kernels.count, KernelNames::kMax);
  EXPECT_FALSE(kernels.complete);
  EXPECT_EQ(kernels.names[0], "k0");
  EXPECT_EQ(kernels.names[KernelNames::kMax - 1], "k511");
  remove(many);
}

TEST(Registration, AHostStubRegisteredAgainMeansTheNewKernel) {
  Program old, fresh;
  old.wrapper.fatbin = 0xB0000;
  fresh.wrapper.fatbin = 0xC0000;
  add_fatbin(old);
  add_kernel(old, 0xB01000, "_Z3oldv");
  add_fatbin(fresh);
  add_kernel(fresh, 0xB01000, "_Z5freshv");
  EXPECT_EQ(find(0xB01000).kernel, "_Z5freshv");
  remove(fresh);
  EXPECT_EQ(find(0xB01000).wrapper, old.address());
  remove(old);
}

TEST(Registration, AKernelRegisteredAgainAndAgainTakesNoMoreRoom) {
  Program program;
  program.wrapper.fatbin = 0xB8000;
  add_fatbin(program);
  constexpr std::size_t kTimes = 300'000;  // more than the room for kernels
  for (std::size_t i = 0; i < kTimes; ++i) add_kernel(program, 0xB81000, "_Z5againv");
  add_kernel(program, 0xB82000, "_Z4lastv");
  EXPECT_EQ(find(0xB82000).kernel, "_Z4lastv");
  bool complete = false;
  EXPECT_EQ(names_of(0xB8000, complete), (std::vector<std::string_view>{"_Z4lastv", "_Z5againv"}));
  remove(program);
}

// A library that was unmapped without unregistering takes its texts along.
TEST(Registration, ANameThatIsGoneIsNotRead) {
  Program program;
  program.wrapper.fatbin = 0xD0000;
  char* const page =
      static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::strcpy(page, "_Z4gonev");
  add_fatbin(program);
  add_kernel(program, 0xD01000, page);
  EXPECT_EQ(find(0xD01000).kernel, "_Z4gonev");
  munmap(page, 4096);
  EXPECT_TRUE(find(0xD01000).kernel.empty());
  EXPECT_EQ(find(0xD01000).wrapper, program.address());
  remove(program);
}

TEST(Registration, WhatStaysKeepsItsKernelsWhenTheRestIsDropped) {
  Program stays, goes;
  stays.wrapper.fatbin = 0xE0000;
  goes.wrapper.fatbin = 0xF0000;
  add_fatbin(goes);
  add_fatbin(stays);
  add_kernel(goes, 0xF01000, "_Z4goesv");
  add_kernel(stays, 0xE01000, "_Z3onev");
  add_kernel(goes, 0xF02000, "_Z4goesv");
  add_kernel(stays, 0xE02000, "_Z3twov");
  remove(goes);
  static Program turns;
  for (std::size_t round = 0; round < 40000; ++round) {  // more than the room for fatbins
    add_fatbin(turns);
    remove(turns);
  }
  bool complete = false;
  EXPECT_EQ(names_of(0xE0000, complete), (std::vector<std::string_view>{"_Z3onev", "_Z3twov"}));
  EXPECT_TRUE(complete);
  EXPECT_EQ(find(0xE02000).wrapper, stays.address());
  EXPECT_TRUE(find(0xF01000).kernel.empty());
  remove(stays);
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
  add_fatbin(stays);
  add_kernel(stays, 0x901000, "_Z4stayv");
  Program turns[2];
  for (std::size_t round = 0; round < kRounds; ++round) {
    // The older of two goes only when the younger is there: what is last is never what goes.
    Program& program = turns[round % 2];
    if (round >= 2) remove(program);
    program.wrapper.fatbin = 0x1000000 + round * 0x100;
    add_fatbin(program);
    for (std::size_t i = 0; i < kernels; ++i)
      add_kernel(program, 0x2000000 + round * 0x100 + i * 0x10, "_Z4turnv");
    if (round < 2) continue;
    ASSERT_EQ(find(0x2000000 + round * 0x100 + (kernels - 1) * 0x10).wrapper, program.address()) << round;
    ASSERT_EQ(find(0x2000000 + (round - 1) * 0x100).wrapper, turns[(round + 1) % 2].address()) << round;
    ASSERT_TRUE(find(0x2000000 + (round - 2) * 0x100).kernel.empty()) << round;
    ASSERT_EQ(find(0x901000).kernel, "_Z4stayv") << round;
  }
  bool complete = false;
  EXPECT_EQ(names_of(0x1000000 + (kRounds - 1) * 0x100, complete).size(), kernels);
  EXPECT_TRUE(complete);
  EXPECT_EQ(names_of(0x90000, complete), std::vector<std::string_view>{"_Z4stayv"});
  EXPECT_TRUE(complete);
  remove(turns[0]);
  remove(turns[1]);
  EXPECT_EQ(find(0x901000).kernel, "_Z4stayv");
  remove(stays);
}

TEST(LaunchSyntax, TheLaunchAfterAFailedLookUpIsNoFailureOfItsOwn) {
  Program program;
  program.wrapper.fatbin = 0x60000;
  add_fatbin(program);
  add_kernel(program, 0x601000, "_Z1kv");
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
