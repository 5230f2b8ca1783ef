// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "failure/cudart_frame.h"
#include "runtime_section.h"
#include "track/handle_names.h"

namespace kshim::shim {
namespace {

class Handles : public ::testing::Test {
 protected:
  HandleInfo recalled(std::uintptr_t handle) const { return names_->recall(handle); }
  bool remember_load(std::uintptr_t handle, std::uint64_t module) const {
    return names_->remember_load(handle, module);
  }
  bool remember_name(std::uintptr_t handle, const std::string& name, std::uintptr_t source) const {
    return names_->remember_name(handle, name, source);
  }
  bool remember_alias(std::uintptr_t handle, std::uintptr_t source) const {
    return names_->remember_alias(handle, source);
  }

 private:
  std::unique_ptr<HandleNames> names_ = std::make_unique<HandleNames>();  // all zero
};

TEST_F(Handles, ForgetsNothingItHasRoomFor) {
  constexpr std::uintptr_t kFirst = 0x7f0000001000;
  constexpr int kCount = 20000;
  constexpr std::uintptr_t kLoad = 0x7e0000001000;
  remember_load(kLoad, 7);
  for (int i = 0; i < kCount; ++i)
    remember_name(kFirst + 64U * static_cast<unsigned>(i), "kernel" + std::to_string(i), kLoad);
  for (int i = 0; i < kCount; ++i) {
    const HandleInfo known = recalled(kFirst + 64U * static_cast<unsigned>(i));
    ASSERT_EQ(known.name, "kernel" + std::to_string(i));
    ASSERT_EQ(known.module, 7U);
  }
}

TEST_F(Handles, AHandleGivenOutAgainMeansTheNewThing) {
  remember_load(0x1110, 1);
  remember_load(0x2220, 2);
  remember_name(0x1234560, "old", 0x1110);
  remember_name(0x1234560, "new", 0x2220);
  EXPECT_EQ(recalled(0x1234560).name, "new");
  EXPECT_EQ(recalled(0x1234560).module, 2U);
  remember_load(0x1234560, 3);
  EXPECT_TRUE(recalled(0x1234560).name.empty());
  EXPECT_EQ(recalled(0x1234560).module, 3U);
}

TEST_F(Handles, UnknownAndNullHandlesAreNothing) {
  remember_name(0, "never", 0);
  remember_load(0, 9);
  EXPECT_TRUE(recalled(0).name.empty());
  EXPECT_EQ(recalled(0).module, 0U);
  EXPECT_EQ(recalled(0x5555).module, 0U);
}

TEST_F(Handles, AnAliasMeansWhatItsSourceMeans) {
  remember_load(0x5550, 5);
  remember_name(0x77770, "kernel", 0x5550);
  EXPECT_FALSE(remember_alias(0x77780, 0x77770));
  EXPECT_EQ(recalled(0x77780).name, "kernel");
  EXPECT_EQ(recalled(0x77780).module, 5U);
  EXPECT_FALSE(remember_alias(0x77780, 0x77770));
  EXPECT_TRUE(remember_alias(0x77780, 0x9990));  // not known
  EXPECT_EQ(recalled(0x77780).module, 0U);
}

TEST_F(Handles, WhatWasFoundInAnUnloadedModuleMeansNothing) {
  remember_load(0x6660, 11);
  remember_name(0x6670, "alpha", 0x6660);
  remember_alias(0x6680, 0x6670);
  EXPECT_EQ(recalled(0x6670).name, "alpha");
  EXPECT_TRUE(stage_unload(0x6660));
  for (const std::uintptr_t handle : {0x6660U, 0x6670U, 0x6680U}) {
    EXPECT_EQ(recalled(handle).module, 0U);
    EXPECT_TRUE(recalled(handle).name.empty());
  }
  remember_load(0x6660, 12);  // the same handle
  EXPECT_EQ(recalled(0x6660).module, 12U);
  EXPECT_TRUE(recalled(0x6670).name.empty());
  remember_name(0x6670, "beta", 0x6660);
  EXPECT_EQ(recalled(0x6670).name, "beta");
}

TEST_F(Handles, UnloadsWaitForTheNextUser) {
  std::uintptr_t handle = 0x8000;
  while (stage_unload(handle)) handle += 16;
  EXPECT_GT(handle, 0x8000U + 16 * 32);
  remember_load(0x8010, 3);  // given out again
  EXPECT_EQ(recalled(0x8010).module, 3U);
  EXPECT_TRUE(stage_unload(0x8010));
  EXPECT_EQ(recalled(0x8010).module, 0U);
}

// A program that compiles kernels forever looks up new names under old handles forever.
TEST_F(Handles, NewNamesReplaceTheOldest) {
  const std::string tail(1000, 'k');
  for (int i = 0; i < 100000; ++i)
    remember_name(0x7e0000000000 + 16U * static_cast<unsigned>(i % 4000), std::to_string(i) + tail, 0);
  EXPECT_EQ(recalled(0x7e0000000000 + 16U * 3999).name, "99999" + tail);
  EXPECT_EQ(recalled(0x7e0000000000 + 16U * 3990).name, "99990" + tail);
}

/// A driver's wrapper, called from one place of a runtime.
[[gnu::noinline]] bool ask() {
  static const char caller = 0;
  return called_from_cudart(&caller, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
}

TEST(Within, TellsWhetherARuntimeCallIsOnTheStack) {
  for (int times = 0; times < 3; ++times) {
    EXPECT_TRUE(test::asked_inside(ask));
    EXPECT_FALSE(ask());
  }
}

}  // namespace
}  // namespace kshim::shim
