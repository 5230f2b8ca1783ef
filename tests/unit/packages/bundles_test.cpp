// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/bundles.h"

#include <gmock/gmock.h>

#include "tests/unit/analyzer/report_text.h"

namespace kshim::packages {
namespace {

TEST(Bundles, RowsTellWhereAndWhen) {
  for (const BundleRow& row : bundles()) {
    EXPECT_FALSE(row.prefix.empty() && row.suffix.empty()) << row.maker;
    EXPECT_THAT(std::string(row.source), ::testing::MatchesRegex(".+, 20[0-9]{2}-[0-9]{2}-[0-9]{2}"))
        << row.maker;
    EXPECT_EQ(bundle_title(row.maker), row.title);
  }
  EXPECT_EQ(bundle_title("pip"), "");
}
TEST(Bundles, APyInstallerFolderIsKnownByItsLibrary) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("train/_internal/torch/lib/libtorch_cuda.so", "x").string();
  EXPECT_FALSE(bundle_of(path));
  folder.write("train/_internal/base_library.zip", "x");
  const auto found = bundle_of(path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "train");
  EXPECT_EQ(found->manager, "pyinstaller");
  EXPECT_EQ(found->environment, (folder.path() / "train/_internal").string());
}
TEST(Bundles, AnUnpackedOneFileProgramIsKnownByItsFolder) {
  const auto found = bundle_of("/tmp/_MEIx2Yz81/torch/lib/libtorch_cuda.so");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "");
  EXPECT_EQ(found->manager, "pyinstaller");
}
TEST(Bundles, OrdinaryFoldersAreNone) {
  EXPECT_FALSE(bundle_of("/home/u/_MEI/x.so"));
  EXPECT_FALSE(bundle_of("/home/u/x_MEI12/x.so"));
  EXPECT_FALSE(bundle_of("/home/u/_internals/x.so"));
  EXPECT_FALSE(bundle_of("/home/u/_MEI123"));
  EXPECT_FALSE(bundle_of(""));
  EXPECT_FALSE(bundle_of("x"));
}

}  // namespace
}  // namespace kshim::packages
