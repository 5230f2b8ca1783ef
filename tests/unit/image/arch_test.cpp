// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/arch.h"

#include <gtest/gtest.h>

#include <string>

#include "fatbin_builder.h"

namespace kshim::image {
namespace {

using test::arch_of;

struct ParseCase {
  const char* text;
  Arch arch;
};

TEST(ParseArch, ReadsWhatPeopleAndToolsWrite) {
  for (const ParseCase& each : {ParseCase{"sm_90", arch_of(90)},
                                {"sm_90a", arch_of(90, Suffix::a)},
                                {"sm90", arch_of(90)},
                                {"compute_90a", arch_of(90, Suffix::a)},
                                {"compute_120f", arch_of(120, Suffix::f)},
                                {"lto_75", arch_of(75)},
                                {"90", arch_of(90)},
                                {"90a", arch_of(90, Suffix::a)},
                                {"9.0", arch_of(90)},
                                {"9.0a", arch_of(90, Suffix::a)},
                                {"12.1", arch_of(121)},
                                {"12.0f", arch_of(120, Suffix::f)},
                                {"10.3", arch_of(103)},
                                {"sm_103", arch_of(103)},
                                {"13.0", arch_of(130)},
                                {"999.9", arch_of(9999)}}) {
    const auto arch = parse_arch(each.text);
    ASSERT_TRUE(arch.ok()) << each.text;
    EXPECT_EQ(*arch, each.arch) << each.text;
  }
}

TEST(ParseArch, RefusesEverythingElse) {
  for (const char* text : {"",        "sm_",
                           "sm",      "a",
                           "9",       "sm_9",
                           "0.9",     "sm_90b",
                           "sm_90aa", "sm_90 ",
                           " sm_90",  "SM_90",
                           "9.",      "9.10",
                           ".9",      "9.0.0",
                           "sm_9.0",  "compute90x",
                           "12345",   "1000.0",
                           "-9.0",    "sm_-90",
                           "all",     "native",
                           "9,0",     "99999999999999999999"}) {
    const auto arch = parse_arch(text);
    ASSERT_FALSE(arch.ok()) << text;
    EXPECT_EQ(arch.error().code, Errc::malformed_text) << text;
  }
}

TEST(ParseVersion, ReadsMajorAndMinor) {
  EXPECT_EQ(*parse_version("13.0"), (Version{13, 0}));
  EXPECT_EQ(*parse_version("13"), (Version{13, 0}));
  EXPECT_EQ(*parse_version("8.8"), (Version{8, 8}));
  EXPECT_EQ(*parse_version("12.10"), (Version{12, 10}));
  for (const char* text : {"", ".", "13.", ".0", "13.0.1", "v13", "13 ", "0.1", "12345.0"})
    EXPECT_EQ(parse_version(text).error().code, Errc::malformed_text) << text;
}

TEST(Version, SpeaksTheDriversNumbers) {
  EXPECT_EQ((Version{12, 4}).cuda_number(), 12040);
  EXPECT_EQ(Version::from_cuda_number(13010), (Version{13, 1}));
  EXPECT_EQ(Version::from_cuda_number(9020), (Version{9, 2}));
  EXPECT_FALSE(Version{}.known());
}

TEST(ToName, SpellsAsTheToolkitDoes) {
  EXPECT_EQ(to_name(ImageKind::cubin, arch_of(90, Suffix::a)).view(), "sm_90a");
  EXPECT_EQ(to_name(ImageKind::ptx, arch_of(120, Suffix::f)).view(), "compute_120f");
  EXPECT_EQ(to_name(ImageKind::ltoir, arch_of(75)).view(), "lto_75");
  EXPECT_EQ(to_name(ComputeCapability{12, 1}).view(), "12.1");
  EXPECT_EQ(to_name(Version{13, 0}).view(), "13.0");
  EXPECT_EQ(to_name(ImageKind::ptx), "ptx");
  EXPECT_EQ(to_name(ImageKind::cubin), "cubin");
  EXPECT_EQ(to_name(ImageKind::ltoir), "ltoir");
  EXPECT_EQ(to_name(ImageKind::tileir, arch_of(100)).view(), "tile_100");
  for (const ImageKind kind : {ImageKind::ptx, ImageKind::cubin, ImageKind::ltoir, ImageKind::tileir})
    EXPECT_EQ(*parse_kind(to_name(kind)), kind);
  EXPECT_FALSE(parse_kind("sass").ok());
}

TEST(ToName, IsTerminatedAndNeverOverflows) {
  const ShortName longest = to_name(ImageKind::ptx, {{65535, 65535}, Suffix::f});
  EXPECT_EQ(longest.view(), "compute_720885f");
  EXPECT_EQ(std::string(longest.c_str()), longest.view());
}

TEST(ToName, ComesBackThroughParse) {
  for (unsigned number = 10; number <= 9999; ++number)
    for (const Suffix suffix : {Suffix::none, Suffix::a, Suffix::f})
      for (const ImageKind kind : {ImageKind::ptx, ImageKind::cubin, ImageKind::ltoir})
        ASSERT_EQ(*parse_arch(to_name(kind, arch_of(number, suffix)).view()), arch_of(number, suffix))
            << number;
}

}  // namespace
}  // namespace kshim::image
