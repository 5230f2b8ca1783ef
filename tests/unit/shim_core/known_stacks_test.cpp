// SPDX-License-Identifier: Apache-2.0
#include "failure/known_stacks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace kshim::shim {
namespace {

using report::FrameRow;
using report::PythonRow;

std::uint64_t of(const std::vector<FrameRow>& rows) { return identity_of(std::span<const FrameRow>(rows)); }
std::uint64_t of(const std::vector<PythonRow>& rows) { return identity_of(std::span<const PythonRow>(rows)); }

TEST(KnownStacks, EveryPartOfAFrameTellsStacksApart) {
  const FrameRow frame{"/a.so", "ab12", 64, "f"};
  std::set<std::uint64_t> seen;
  const auto is_new = [&seen](const std::vector<FrameRow>& rows) { return seen.insert(of(rows)).second; };
  EXPECT_TRUE(is_new({frame}));
  EXPECT_TRUE(is_new({{"/b.so", "ab12", 64, "f"}}));
  EXPECT_TRUE(is_new({{"/a.so", "ab13", 64, "f"}}));
  EXPECT_TRUE(is_new({{"/a.so", {}, 64, "f"}}));
  EXPECT_TRUE(is_new({{"/a.so", "ab12", 65, "f"}}));
  EXPECT_TRUE(is_new({{"/a.so", "ab12", 64, {}}}));
  EXPECT_TRUE(is_new({{"/a.so", "ab12", 64, ""}})) << "written as \"\", not as null";
  EXPECT_TRUE(is_new({frame, frame}));
  EXPECT_TRUE(is_new({frame, {"/b.so", "ab12", 64, "f"}}));
  EXPECT_TRUE(is_new({{"/b.so", "ab12", 64, "f"}, frame}));
  EXPECT_FALSE(is_new({frame}));
  const std::string copy = "/a.so";
  EXPECT_FALSE(is_new({{copy, "ab12", 64, "f"}})) << "what is written counts, not where it lies";
}

TEST(KnownStacks, EveryPartOfAPythonFrameTellsStacksApart) {
  const PythonRow frame{"a.py", 7, "f"};
  std::set<std::uint64_t> seen;
  const auto is_new = [&seen](const std::vector<PythonRow>& rows) { return seen.insert(of(rows)).second; };
  EXPECT_TRUE(is_new({frame}));
  EXPECT_TRUE(is_new({{"b.py", 7, "f"}}));
  EXPECT_TRUE(is_new({{"a.py", 8, "f"}}));
  EXPECT_TRUE(is_new({{"a.py", 7, "g"}}));
  EXPECT_TRUE(is_new({frame, frame}));
  EXPECT_FALSE(is_new({frame}));
}

TEST(KnownStacks, NoFramesAreNothingToName) {
  EXPECT_EQ(of(std::vector<FrameRow>()), 0U);
  KnownStacks known;
  known.add(0, 1);
  EXPECT_FALSE(known.find(0));
}

TEST(KnownStacks, TheFirstIsNamed) {
  KnownStacks known;
  EXPECT_FALSE(known.find(5));
  known.add(5, 2);
  known.add(6, 3);
  known.add(5, 4);
  EXPECT_EQ(known.find(5), 2U);
  EXPECT_EQ(known.find(6), 3U);
  known.clear();
  EXPECT_FALSE(known.find(5));
  EXPECT_FALSE(known.find(6));
  known.add(7, KnownStacks::kMax);
  EXPECT_EQ(known.find(7), KnownStacks::kMax);
  known.add(8, KnownStacks::kMax + 1);
  known.add(8, 0);
  EXPECT_FALSE(known.find(8));
  known.clear();
  EXPECT_FALSE(known.find(7));
}

}  // namespace
}  // namespace kshim::shim
