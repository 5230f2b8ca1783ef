// SPDX-License-Identifier: Apache-2.0
#include "registration.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fatbin_builder.h"
#include "launch_syntax.h"
#include "registered.h"

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

TEST(LaunchSyntax, TheLaunchAfterAFailedLookUpIsNoFailureOfItsOwn) {
  Program program;
  program.wrapper.fatbin = 0x60000;
  registered::fatbin(program.handle(), program.address());
  registered::kernel(program.handle(), 0x601000, "_Z1kv");
  CallFacts look_up;
  look_up.hook = Hook::__cudaGetKernel;
  look_up.host = 0x601000;
  CallFacts launch;
  launch.hook = Hook::__cudaLaunchKernel;
  launch.handle = 0x601000;
  EXPECT_TRUE(complete_launch(look_up));
  EXPECT_FALSE(complete_launch(launch));
  // The next one is: the stub asks for its kernel only once.
  launch.host = 0;
  EXPECT_TRUE(complete_launch(launch));
  EXPECT_EQ(launch.host, 0x601000U);
  CallFacts other = launch;
  other.hook = Hook::cudaLaunchKernel;
  EXPECT_TRUE(complete_launch(other));
}

}  // namespace
}  // namespace kshim::shim
