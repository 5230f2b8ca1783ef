// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/compare/diff.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

Object object_at(const std::string& place, const std::string& member = "") {
  return {.name = member.empty() ? place : place + "!" + member, .place = place, .member = member};
}

/// "a=b(how)" by place or member, in order.
std::vector<std::string> matched(const std::vector<Object>& a, const std::vector<Object>& b) {
  const auto name = [](const Object* one) { return one == nullptr ? std::string("-") : one->name; };
  std::vector<std::string> out;
  for (const Pair& pair : match(a, b))
    out.push_back(name(pair.a) + "=" + name(pair.b) + "(" + pair.match + ")");
  return out;
}

using Names = std::vector<std::string>;

TEST(DiffStem, IsWhatStaysOfAName) {
  for (const auto& [file, expected] :
       std::vector<std::pair<const char*, const char*>>{{"libcudart.so.12", "libcudart.so"},
                                                        {"libcudart-e409450e.so.11.0", "libcudart.so"},
                                                        {"libcudart.so", "libcudart.so"},
                                                        {"_C.cpython-311-x86_64-linux-gnu.so", "_C.so"},
                                                        {"_C.abi3.so", "_C.so"},
                                                        {"libfoo-deadbeef.so", "libfoo.so"},
                                                        {"libfoo-notahash.so", "libfoo-notahash.so"},
                                                        {"saxpy", "saxpy"},
                                                        {"x.soup", "x.soup"},
                                                        {".so", ".so"},
                                                        {"", ""}})
    EXPECT_EQ(stem(file), expected) << file;
}

TEST(DiffMatch, ByPathFirst) {
  EXPECT_EQ(matched({object_at("a/x.so"), object_at("b/x.so")}, {object_at("b/x.so"), object_at("a/x.so")}),
            (Names{"a/x.so=a/x.so(path)", "b/x.so=b/x.so(path)"}));
}

TEST(DiffMatch, AWheelOfAnotherVersionMemberByMember) {
  const std::string old_wheel = "torch-2.9.1+cu126-cp311-cp311-linux_x86_64.whl";
  const std::string new_wheel = "torch-2.9.1+cu128-cp311-cp311-linux_x86_64.whl";
  EXPECT_EQ(matched({object_at(old_wheel, "torch/lib/a.so"), object_at(old_wheel, "torch/lib/b.so")},
                    {object_at(new_wheel, "torch/lib/b.so"), object_at(new_wheel, "torch/lib/c.so")}),
            (Names{old_wheel + "!torch/lib/a.so=-()",
                   old_wheel + "!torch/lib/b.so=" + new_wheel + "!torch/lib/b.so(package)",
                   "-=" + new_wheel + "!torch/lib/c.so()"}));
}

TEST(DiffMatch, EnvironmentsOfTwoPythons) {
  EXPECT_EQ(matched({object_at("lib/python3.11/site-packages/x/_C.so"), object_at("y")},
                    {object_at("lib/python3.12/site-packages/x/_C.so"), object_at("y")}),
            (Names{"lib/python3.11/site-packages/x/_C.so=lib/python3.12/site-packages/x/_C.so(package)",
                   "y=y(path)"}));
}

TEST(DiffMatch, ByNameOnlyWhereItIsOne) {
  EXPECT_EQ(matched({object_at("old/libx.so.11"), object_at("old/y")},
                    {object_at("new/libx.so.12"), object_at("new/y")}),
            (Names{"old/libx.so.11=new/libx.so.12(name)", "old/y=new/y(name)"}));
  EXPECT_EQ(
      matched({object_at("1/_C.so"), object_at("2/_C.so")}, {object_at("3/_C.so"), object_at("4/_C.so")}),
      (Names{"1/_C.so=-()", "2/_C.so=-()", "-=3/_C.so()", "-=4/_C.so()"}));
}

TEST(DiffMatch, TwoFilesThatWereNamedBelongTogether) {
  EXPECT_EQ(matched({object_at("old.so")}, {object_at("new.so")}), Names{"old.so=new.so(path)"});
  EXPECT_EQ(matched({}, {object_at("new.so")}), Names{"-=new.so()"});
  EXPECT_TRUE(matched({}, {}).empty());
}

TEST(DiffMatch, TwinsOfAnArchiveInTheirOrder) {
  const auto pairs = match({object_at("x.a", "k.o"), object_at("x.a", "k.o"), object_at("x.a", "k.o")},
                           {object_at("x.a", "k.o"), object_at("x.a", "k.o")});
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_NE(pairs[0].b, nullptr);
  EXPECT_NE(pairs[1].b, nullptr);
  EXPECT_NE(pairs[0].b, pairs[1].b);
  EXPECT_EQ(pairs[2].b, nullptr);
}

}  // namespace
}  // namespace kshim::test
