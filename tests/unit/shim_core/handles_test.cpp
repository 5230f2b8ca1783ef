// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "failure/cudart_frame.h"
#include "runtime_section.h"
#include "track/handle_names.h"

namespace kshim::shim {
namespace {

TEST(Handles, ForgetsNothingItHasRoomFor) {
  constexpr std::uintptr_t kFirst = 0x7f0000001000;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i)
    remember_handle(kFirst + 64U * static_cast<unsigned>(i), "kernel" + std::to_string(i),
                    static_cast<unsigned>(i) + 1U);
  for (int i = 0; i < kCount; ++i) {
    const HandleFacts facts = recall_handle(kFirst + 64U * static_cast<unsigned>(i));
    ASSERT_EQ(facts.name, "kernel" + std::to_string(i));
    ASSERT_EQ(facts.module, static_cast<unsigned>(i) + 1U);
  }
}

TEST(Handles, AHandleGivenOutAgainMeansTheNewThing) {
  remember_handle(0x1234560, "old", 1);
  remember_handle(0x1234560, "new", 2);
  EXPECT_EQ(recall_handle(0x1234560).name, "new");
  EXPECT_EQ(recall_handle(0x1234560).module, 2U);
  remember_handle(0x1234560, {}, 3);
  EXPECT_TRUE(recall_handle(0x1234560).name.empty());
  EXPECT_EQ(recall_handle(0x1234560).module, 3U);
}

TEST(Handles, UnknownAndNullHandlesAreNothing) {
  remember_handle(0, "never", 9);
  EXPECT_TRUE(recall_handle(0).name.empty());
  EXPECT_EQ(recall_handle(0).module, 0U);
  EXPECT_EQ(recall_handle(0x5555).module, 0U);
}

TEST(Within, TellsWhetherARuntimeCallIsOnTheStack) {
  EXPECT_TRUE(test::asked_inside());
  EXPECT_FALSE(inside_runtime_call());
}

}  // namespace
}  // namespace kshim::shim
