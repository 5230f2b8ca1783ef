// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "analyzer/owner/databases.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

using ::testing::ElementsAre;

class Python : public ::testing::Test {
 protected:
  static constexpr const char* kSite = "venv/lib/python3.11/site-packages/";
  std::string write(const std::string& file, std::string_view text = "x") {
    return folder_.write(kSite + file, text).string();
  }
  void distribution(const std::string& name, const std::string& version, std::string_view record) {
    const std::string info = name + "-" + version + ".dist-info/";
    write(info + "RECORD", record);
    write(info + "METADATA",
          fmt::format("Metadata-Version: 2.1\nName: {}\nVersion: {}\n\nName: body\n", name, version));
  }
  std::string label(const std::string& path) {
    const auto found = distributions_.owner(path);
    return found ? found->label() : "nobody";
  }
  TemporaryFolder folder_;
  LookupBudget budget_;
  PythonDistributions distributions_{budget_};
};

TEST_F(Python, AFileBelongsToWhoRecordsIt) {
  distribution("other", "2.0", "foo/_C.so.bak,sha256=x,1\n");
  distribution("foo_ext", "1.2", "foo/__init__.py,,\nfoo/_C.so,sha256=x,7\n");
  EXPECT_EQ(label(write("foo/_C.so")), "foo_ext 1.2");
  EXPECT_EQ(label(write("foo/_D.so")), "nobody");
  EXPECT_EQ(label("/usr/lib/libfoo.so"), "nobody");
}
TEST_F(Python, MetadataHasTheNameAsItIsWritten) {
  write("foo_ext-1.2.dist-info/RECORD", "foo/_C.so,,\n");
  write("foo_ext-1.2.dist-info/METADATA", "Name: Foo-Ext\r\nVersion: 1.2\r\n\r\nName: body\r\n");
  write("foo_ext-1.2.dist-info/INSTALLER", "uv\n");
  const auto found = distributions_.owner(write("foo/_C.so"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "Foo-Ext");
  EXPECT_EQ(found->installer, "uv");
  EXPECT_EQ(found->manager, "pip");
}
TEST_F(Python, WithoutMetadataTheFoldersNameTells) {
  write("foo_ext-1.2.dist-info/RECORD", "foo/_C.so,,\n");
  EXPECT_EQ(label(write("foo/_C.so")), "foo_ext 1.2");
}
TEST_F(Python, APathWithACommaIsQuoted) {
  distribution("foo", "1.0", "\"foo/a,\"\"b.so\",sha256=x,1\n\"foo/open.so\nfoo/b.so,,\n");
  EXPECT_EQ(label(write("foo/a,\"b.so")), "foo 1.0");
  EXPECT_EQ(label(write("foo/b.so")), "foo 1.0");
}
TEST_F(Python, NamespacePackagesAreToldApartByTheirRecords) {
  distribution("nvidia_cublas_cu12", "12.8.4.1", "nvidia/cublas/lib/libcublas.so.12,,\n");
  distribution("nvidia_cudnn_cu12", "9.10.2.21", "nvidia/cudnn/lib/libcudnn.so.9,,\n");
  EXPECT_EQ(label(write("nvidia/cublas/lib/libcublas.so.12")), "nvidia_cublas_cu12 12.8.4.1");
  EXPECT_EQ(label(write("nvidia/cudnn/lib/libcudnn.so.9")), "nvidia_cudnn_cu12 9.10.2.21");
  EXPECT_EQ(label(write("nvidia/other/lib/libother.so")), "nobody");
}
TEST_F(Python, AVendoredCopyBelongsToTheWheel) {
  distribution("faiss_gpu_cu12", "1.13.2", "faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so,,\n");
  EXPECT_EQ(label(write("faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so")), "faiss_gpu_cu12 1.13.2");
}
TEST_F(Python, WithoutARecordTheLibsFolderTells) {
  write("faiss_gpu_cu12-1.13.2.dist-info/METADATA", "Name: faiss-gpu-cu12\nVersion: 1.13.2\n\n");
  EXPECT_EQ(label(write("faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so")), "faiss-gpu-cu12 1.13.2");
}
TEST_F(Python, WithoutADistInfoTheLibsFolderTellsTheName) {
  EXPECT_EQ(label(write("faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so")), "faiss-gpu-cu12");
}
TEST_F(Python, ALibsFolderOfARecordedDistributionIsNotItsOwnForTheName) {
  distribution("faiss_gpu_cu12", "1.13.2", "faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so,,\n");
  EXPECT_EQ(label(write("faiss_gpu_cu12.libs/libput-here-by-hand.so")), "nobody");
}
TEST_F(Python, WithoutARecordThePackagesFolderTells) {
  write("torch-2.9.1.dist-info/METADATA", "Name: torch\nVersion: 2.9.1\n\n");
  write("torch-2.9.1.dist-info/RECORD", "");
  EXPECT_EQ(label(write("torch/lib/libtorch_cuda.so")), "torch 2.9.1");
}
TEST_F(Python, WhatAnInterruptedInstallationLeftOwnsNothing) {
  write("~orch-2.1.0.dist-info/RECORD", "torch/lib/libtorch_cuda.so,,\n");
  distribution("torch", "2.9.1", "torch/lib/libtorch_cuda.so,,\n");
  const auto found = distributions_.owner(write("torch/lib/libtorch_cuda.so"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->label(), "torch 2.9.1");
  EXPECT_TRUE(found->also.empty());
}
TEST_F(Python, OfTwoThatShareAFileTheOneOfItsSizeIsThere) {
  distribution("onnxruntime", "1.20.1", "onnxruntime/capi/state.so,sha256=x,4\n");
  distribution("onnxruntime_gpu", "1.19.0", "onnxruntime/capi/state.so,sha256=x,6\n");
  const std::string path = write("onnxruntime/capi/state.so", "123456");
  const auto found = distributions_.owner(path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->label(), "onnxruntime_gpu 1.19.0");
  EXPECT_THAT(found->also, ElementsAre("onnxruntime 1.20.1"));
}
TEST_F(Python, DistPackagesAreSitePackages) {
  const std::string site = "usr/local/lib/python3.11/dist-packages/";
  folder_.write(site + "foo-1.0.dist-info/RECORD", "foo/_C.so,,\n");
  EXPECT_EQ(label(folder_.write(site + "foo/_C.so", "x").string()), "foo 1.0");
}
TEST_F(Python, HostileRecordsOwnNothingElsewhere) {
  using namespace std::string_view_literals;
  distribution("evil", "1", "/etc/passwd,,\n,,\n\"\"\n\"\n../../../../x,,\n\0,,\nfoo/_C.so,,"sv);
  EXPECT_EQ(label(write("victim/_C.so")), "nobody");
}
TEST_F(Python, ARecordThatIsAFolderIsNone) {
  write("foo-1.dist-info/RECORD/x", "");
  write("foo-1.dist-info/METADATA", "Name: foo\nVersion: 1\n");
  EXPECT_EQ(label(write("bar/_C.so")), "nobody");
}
TEST_F(Python, OverTheBudgetNobodyOwnsAnything) {
  distribution("foo", "1.0", "foo/_C.so,,\n");
  budget_.bytes = 3;
  EXPECT_EQ(label(write("foo/_C.so")), "foo 1.0");  // by the folder's name: the RECORD was too much
  budget_.entries = 0;
  PythonDistributions none(budget_);
  EXPECT_FALSE(none.owner(write("foo/_C.so")));
}

TEST(VendoredLibrary, IsNamedWithoutItsHash) {
  EXPECT_EQ(vendored_library("/v/site-packages/faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so"), "libfaiss");
  EXPECT_EQ(vendored_library("/v/site-packages/torch.libs/libgomp-a34b3233.so.1.0.0"), "libgomp");
  EXPECT_EQ(vendored_library("/v/site-packages/foo/.libs/libopenblasp-r0-3fde0a1f.3.21.so"),
            "libopenblasp-r0-3fde0a1f.3.21");
  EXPECT_EQ(vendored_library("/v/site-packages/a.libs/libcublas.so.12"), "libcublas");
  EXPECT_EQ(vendored_library("/v/site-packages/torch/lib/libtorch-1a2b3c4d.so"), "");
  EXPECT_EQ(vendored_library("/v/a.libs/README"), "");
  EXPECT_EQ(vendored_library("a.libs"), "");
}
TEST(PackageOfArchive, IsInItsName) {
  EXPECT_EQ(package_of_archive("dist/torch-2.9.1-cp311-cp311-linux_x86_64.whl").label(), "torch 2.9.1");
  EXPECT_EQ(package_of_archive("pytorch-gpu-2.5.1-py3.11_cuda12.4_0.conda").label(), "pytorch-gpu 2.5.1");
  EXPECT_EQ(package_of_archive("pytorch-gpu-2.5.1-py3.11_cuda12.4_0.conda").build, "py3.11_cuda12.4_0");
  EXPECT_EQ(package_of_archive("torch.whl").label(), "");
  EXPECT_EQ(package_of_archive("a-b.conda").label(), "");
  EXPECT_EQ(package_of_archive("torch-2.9.1-cp311.zip").label(), "");
}

}  // namespace
}  // namespace kshim::test
