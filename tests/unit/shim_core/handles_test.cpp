// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "failure/cudart_frame.h"
#include "runtime_section.h"
#include "track/handle_names.h"

namespace kshim::shim {
namespace {

HandleInfo g_info;

const HandleInfo& recalled(std::uintptr_t handle) {
  recall_handle(handle, g_info);
  return g_info;
}

TEST(Handles, ForgetsNothingItHasRoomFor) {
  constexpr std::uintptr_t kFirst = 0x7f0000001000;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i)
    remember_handle(kFirst + 64U * static_cast<unsigned>(i), "kernel" + std::to_string(i),
                    static_cast<unsigned>(i) + 1U);
  for (int i = 0; i < kCount; ++i) {
    recall_handle(kFirst + 64U * static_cast<unsigned>(i), g_info);
    ASSERT_EQ(g_info.name(), "kernel" + std::to_string(i));
    ASSERT_EQ(g_info.module, static_cast<unsigned>(i) + 1U);
  }
}

TEST(Handles, AHandleGivenOutAgainMeansTheNewThing) {
  remember_handle(0x1234560, "old", 1);
  remember_handle(0x1234560, "new", 2);
  EXPECT_EQ(recalled(0x1234560).name(), "new");
  EXPECT_EQ(recalled(0x1234560).module, 2U);
  remember_handle(0x1234560, {}, 3);
  EXPECT_TRUE(recalled(0x1234560).name().empty());
  EXPECT_EQ(recalled(0x1234560).module, 3U);
}

TEST(Handles, UnknownAndNullHandlesAreNothing) {
  remember_handle(0, "never", 9);
  EXPECT_TRUE(recalled(0).name().empty());
  EXPECT_EQ(recalled(0).module, 0U);
  EXPECT_EQ(recalled(0x5555).module, 0U);
}

TEST(Handles, AnAliasMeansWhatItsSourceMeans) {
  remember_handle(0x77770, "kernel", 5);
  EXPECT_FALSE(remember_alias(0x77780, 0x77770));
  EXPECT_EQ(recalled(0x77780).name(), "kernel");
  EXPECT_EQ(recalled(0x77780).module, 5U);
  EXPECT_TRUE(handle_has_name(0x77780, "kernel"));
  EXPECT_FALSE(remember_alias(0x77780, 0x77770));
  EXPECT_TRUE(remember_alias(0x77780, 0x9990));  // not known
  EXPECT_EQ(recalled(0x77780).module, 0U);
}

// A program that compiles kernels forever looks up new names under old handles forever.
TEST(Handles, NewNamesReplaceTheOldest) {
  const std::string tail(1000, 'k');
  for (int i = 0; i < 100000; ++i)
    remember_handle(0x7e0000000000 + 16U * static_cast<unsigned>(i % 4000), std::to_string(i) + tail,
                    static_cast<unsigned>(i));
  EXPECT_EQ(recalled(0x7e0000000000 + 16U * 3999).name(), "99999" + tail);
  EXPECT_EQ(recalled(0x7e0000000000 + 16U * 3999).module, 99999U);
  EXPECT_EQ(recalled(0x7e0000000000 + 16U * 3990).module, 99990U);
}

TEST(Within, TellsWhetherARuntimeCallIsOnTheStack) {
  EXPECT_TRUE(test::asked_inside());
  EXPECT_FALSE(called_from_cudart());
}

}  // namespace
}  // namespace kshim::shim
