// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/distributions.h"

#include <gtest/gtest.h>

namespace kshim::owner {
using data::ProjectName;

namespace {

TEST(Distributions, SayWhatTheyAskFor) {
  const auto got = read_distribution(
      "Metadata-Version: 2.1\nName: xformers\nVersion: 0.0.27\nProvides-Extra: flash\n"
      "Requires-Dist: numpy\nRequires-Dist: torch (==2.3.1)\nRequires-Dist: tensorflow[and-cuda]>=2,<3\n"
      "Requires-Dist: triton==2.1; extra == \"flash\"\nRequires-Dist: pywin32>=1; sys_platform == \"win32\"\n"
      "\nRequires-Dist: nothing==1\n");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->label(), "xformers 0.0.27");
  EXPECT_EQ(got->extras, std::vector<std::string>{"flash"});
  ASSERT_EQ(got->demands.size(), 4U);
  EXPECT_EQ(got->demands[1].project, ProjectName("torch"));
  EXPECT_EQ(got->demands[1].range, "==2.3.1");
  EXPECT_EQ(got->demands[2].project, ProjectName("tensorflow"));
  EXPECT_EQ(got->demands[2].range, ">=2,<3");
}

TEST(Distributions, HaveNamesThatCanStandInACommand) {
  EXPECT_FALSE(read_distribution("Name: x; rm -rf ~\nVersion: 1\n"));
  EXPECT_FALSE(read_distribution(""));
}

TEST(Distributions, RangesThatExcludeEachOther) {
  for (const auto& [a, b, excluded] :
       std::initializer_list<std::tuple<const char*, const char*, bool>>{{"==2.3.1", "==2.7.*", true},
                                                                         {"==2.7.1", "==2.7.*", false},
                                                                         {"==2.7.0", "==2.7.1+cu128", true},
                                                                         {"==2.8.0", "==2.8.0+cu126", false},
                                                                         {"==8.9.4.25", ">=9.7", true},
                                                                         {"==9.10.2.21", "<9.11", false},
                                                                         {"==9.10.2.21", "==9.10.*", false},
                                                                         {"<2.6,>=2.4", "==2.7.*", true},
                                                                         {"<2.6,>=2.4", "==2.5.*", false},
                                                                         {"~=2.4.1", "==2.4.5", false},
                                                                         {"~=2.4.1", "==2.5.*", true},
                                                                         {"!=2.5.0", "==2.5.0", true},
                                                                         {"!=2.5.0", "==2.5.*", false},
                                                                         {"<9", ">=9.7", true},
                                                                         {">=9,<10", ">=9.7", false},
                                                                         {"", "==2.7.*", false},
                                                                         {">=2.7.1", "==2.7.*", false},
                                                                         {"<2.7", "==2.7.*", true},
                                                                         {"==2.10.0", "==2.1.*", true}}) {
    EXPECT_EQ(exclude_each_other(a, b), excluded) << a << " " << b;
    EXPECT_EQ(exclude_each_other(b, a), excluded) << b << " " << a;
  }
}

}  // namespace
}  // namespace kshim::owner
