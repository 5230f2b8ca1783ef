// SPDX-License-Identifier: Apache-2.0
// Which files are looked at, whose they are, and how the matrix shows them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/scan/distributions.h"
#include "analyzer/scan/kernel_needs.h"
#include "analyzer/scan/matrix.h"
#include "analyzer/scan/render.h"
#include "analyzer/scan/walk.h"
#include "kshim/image/cubin.h"

namespace kshim::scan {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kshim-scan-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { fs::remove_all(path_); }
  fs::path write(const fs::path& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  fs::path path_;
};

using Walks = Folder;
TEST_F(Walks, EachFileOnceByWhicheverName) {
  const fs::path file = write("a/one", "1");
  fs::create_hard_link(file, path_ / "a/two");
  fs::create_symlink("one", path_ / "a/three");
  fs::create_directory_symlink(".", path_ / "a/self");
  const Inputs inputs = list_inputs({path_});
  EXPECT_EQ(inputs.files.size(), 1U);
  EXPECT_EQ(inputs.duplicates, 2U);
  EXPECT_TRUE(inputs.notes.empty());
}
TEST_F(Walks, WhatIsNamedAndNotThereIsANote) {
  const Inputs inputs = list_inputs({path_ / "missing", "/dev/null"});
  EXPECT_TRUE(inputs.files.empty());
  EXPECT_EQ(inputs.notes.size(), 2U);
}

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
TEST(FileKinds, ByFirstBytesAndForSomeByName) {
  EXPECT_EQ(file_kind(bytes_of("\x7f"
                               "ELF\2\1\1"),
                      "x", false),
            FileKind::device_code);
  EXPECT_EQ(file_kind(bytes_of("MZ\x90"), "x.dll", false), FileKind::device_code);
  EXPECT_EQ(file_kind(bytes_of("//\n.version 8.0\n"), "x", false), FileKind::device_code);
  EXPECT_EQ(file_kind(bytes_of("// only a comment so far"), "x.ptx", false), FileKind::device_code);
  EXPECT_EQ(file_kind(bytes_of("!<arch>\n"), "libx.a", false), FileKind::container);
  EXPECT_EQ(file_kind(bytes_of("import torch\n"), "x.py", true), FileKind::other);
  EXPECT_EQ(file_kind({}, "empty", true), FileKind::other);
}
TEST(FileKinds, ContainersOfDataAreOpenedOnlyWhereNamed) {
  constexpr std::string_view kZip("PK\3\4", 4);
  EXPECT_EQ(file_kind(bytes_of(kZip), "model.pt", false), FileKind::other);
  EXPECT_EQ(file_kind(bytes_of(kZip), "model.pt", true), FileKind::container);
  EXPECT_EQ(file_kind(bytes_of(kZip), "torch.whl", false), FileKind::container);
}

using Owners = Folder;
TEST_F(Owners, AreReadFromRecords) {
  const fs::path site = path_ / "lib/site-packages";
  write("lib/site-packages/foo/_C.so", "x");
  write("lib/site-packages/foo-1.0.dist-info/METADATA", "Name: foo\nVersion: 1.0\n\nVersion: 9\n");
  write("lib/site-packages/foo-1.0.dist-info/RECORD", "foo/_C.so,sha256=abc,1\n\"foo/a,\"\"b.so\",,\n");
  Distributions owners;
  EXPECT_EQ(owners.of((site / "foo/_C.so").string()), "foo 1.0");
  EXPECT_EQ(owners.of((site / "foo/a,\"b.so").string()), "foo 1.0");
  EXPECT_EQ(owners.of((site / "bar/_C.so").string()), "");
  EXPECT_EQ(owners.of("/usr/lib/libfoo.so"), "");
}
TEST(OwnersOfWheels, AreInTheirNames) {
  EXPECT_EQ(distribution_of_wheel("dist/torch-2.9.1-cp311-cp311-linux_x86_64.whl"), "torch 2.9.1");
  EXPECT_EQ(distribution_of_wheel("torch.whl"), "");
  EXPECT_EQ(distribution_of_wheel("torch-2.9.1-cp311.zip"), "");
}

TEST(Sizes, AreDecimalAndShort) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1'500), "1.5 kB");
  EXPECT_EQ(size_text(2'340'000'000), "2.3 GB");
  EXPECT_EQ(size_text(999'600'000), "1.0 GB");
  EXPECT_EQ(size_text(12'000'000), "12 MB");
}

Scan two_files() {
  Scan scan;
  scan.targets = {*image::parse_arch("12.0")};
  for (const char* name : {"lib/a.so", "lib/\x1b[31mb.so"}) {
    ScannedObject object;
    object.path = name;
    object.package = "foo 1.0";
    object.images.push_back({{image::ImageKind::cubin, *image::parse_arch("8.0"), {}}, 1, 10});
    object.targets.push_back({.target = scan.targets[0], .lacking = 1});
    scan.objects.push_back(object);
  }
  return scan;
}
TEST(Matrices, OneRowAFileOrOneADistribution) {
  const Scan scan = two_files();
  EXPECT_EQ(matrix_rows(scan, false).size(), 2U);
  const auto summed = matrix_rows(scan, true);
  ASSERT_EQ(summed.size(), 1U);
  EXPECT_EQ(summed[0].name, "foo 1.0 (2 files)");
  EXPECT_EQ(summed[0].images[0].count, 2U);
  EXPECT_EQ(summed[0].targets[0].lacking, 2U);
}
TEST(Matrices, ForeignNamesAreHarmlessAndNarrowPagesGetAList) {
  for (const unsigned width : {100U, 20U}) {
    const std::string text = render_text(two_files(), {.width = width});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(text.find("none"), std::string::npos) << text;
  }
}

TEST(KernelNeeds, AreRangesOverWhatIsKnown) {
  constexpr std::uint32_t kUnknown = image::KernelInfo::kUnknown;
  ScannedKernel kernel;
  kernel.images = {{"sm_80", 24, 512, 0, kUnknown},
                   {"sm_90", 40, 512, 0, 256},
                   {"compute_90", kUnknown, kUnknown, kUnknown, kUnknown}};
  EXPECT_EQ(needs_text(kernel), "24 to 40 registers, 512 bytes shared, up to 256 threads");
  EXPECT_EQ(kernel.archs(), (std::vector<std::string>{"sm_80", "sm_90", "compute_90"}));
  kernel.images.erase(kernel.images.begin(), kernel.images.begin() + 2);
  EXPECT_EQ(needs_text(kernel), "");
}

}  // namespace
}  // namespace kshim::scan
