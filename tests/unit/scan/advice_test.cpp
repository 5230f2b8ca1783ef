// SPDX-License-Identifier: Apache-2.0
// What a scan advises: commands that the file's makers can run, and none for what only others can build.
#include "analyzer/advise/advice.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/rules.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/verbs/fleet_plans.h"
#include "analyzer/verbs/scan_parts.h"
#include "dynamic_elf.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ImageKind;

struct Built {
  std::string_view arch;
  std::vector<std::string> kernels;
};

// A file of one module a list, of PTX, whose kernels can be written down.
class Advising : public ::testing::Test {
 protected:
  void add_module(const std::vector<Built>& images) {
    CodeModule module;
    module.first = static_cast<std::uint32_t>(code_.images.size());
    module.count = static_cast<std::uint32_t>(images.size());
    for (const Built& built : images) {
      std::string text = ".version 8.7\n.target sm_" + std::string(built.arch) + "\n.address_size 64\n";
      for (const std::string& name : built.kernels) text += ".visible .entry " + name + "()\n{\nret;\n}\n";
      texts_.push_back(std::make_unique<std::string>(std::move(text)));
      CodeImage image;
      image.candidate = {ImageKind::ptx, image::parse_arch(built.arch).value_or(image::Arch{}), {8, 7}};
      image.payload = Bytes(reinterpret_cast<const std::byte*>(texts_.back()->data()), texts_.back()->size());
      image.bytes = texts_.back()->size();
      code_.images.push_back(image);
    }
    code_.modules.push_back(module);
    code_.host = HostFormat::elf;
  }

  // All that a reader is told to do, one a line.
  std::string advice(std::string_view target, std::string path, std::string member = {},
                     std::string package = {}, bool kernels = false) {
    object_ = {};
    object_.path = std::move(path);
    object_.member = std::move(member);
    object_.package.name = package.substr(0, package.find(' '));
    if (const std::size_t blank = package.find(' '); blank != std::string::npos)
      object_.package.version = package.substr(blank + 1);
    if (object_.path.ends_with(".whl")) object_.package.installer = "pip";
    object_.images = count_images(code_);
    KernelTable table;
    const FileCoverage coverage =
        cover(code_, {image::parse_arch(target).value_or(image::Arch{})}, {}, kernels ? &table : nullptr);
    object_.targets = coverage.targets;
    findings_ = findings_of({object_, code_, coverage, {}, kernels ? &table : nullptr, true}, {});
    advise_on(findings_);
    settle(findings_);
    std::string out;
    for (const Finding& finding : findings_) {
      for (const Fix& fix : finding.fixes) {
        out += fix.title + " (" + fix.why + ")\n";
        for (const std::string& command : fix.commands) out += command + "\n";
      }
    }
    return out;
  }

  std::vector<Finding> findings_;

 private:
  DeviceCode code_;
  ScannedObject object_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_F(Advising, AnObjectIsCompiledAndNotLinked) {
  add_module({{"90", {"k"}}});
  EXPECT_TRUE(has(advice("8.0", "a.o"), "nvcc -c -gencode"));
  EXPECT_TRUE(has(advice("8.0", "libx.a", "b"), "nvcc -c -gencode"));
  EXPECT_FALSE(has(advice("8.0", "pkg.whl", "lib/libcufft_static.a!b"), "nvcc")) << "an archive in a wheel";
  EXPECT_FALSE(has(advice("8.0", "liba.so"), " -c "));
}

TEST_F(Advising, ARebuildKeepsWhatOtherModulesHave) {
  add_module({{"75", {"one"}}, {"90a", {"one"}}});
  add_module({{"90", {"two"}}});
  const std::string said = advice("8.0", "liba.so");
  ASSERT_EQ(findings_.at(0).cause, Cause::latent_gap);
  for (const char* part : {"code=compute_75", "code=sm_80", "code=compute_90 ", "code=compute_90a"})
    EXPECT_TRUE(has(said, part)) << part << "\n" << said;
}

TEST_F(Advising, OnlyWhatPyTorchBuildsHeedsItsList) {
  add_module({{"90", {"k"}}});
  const auto list = [&](std::string path, std::string member = {}, std::string package = {}) {
    return advice("8.0", std::move(path), std::move(member), std::move(package));
  };
  const std::string unknown = list("a.cpython-311-x86_64-linux-gnu.so");
  EXPECT_FALSE(has(unknown, "TORCH_CUDA_ARCH_LIST")) << unknown;
  EXPECT_TRUE(has(unknown, "NVCC_APPEND_FLAGS=\"-gencode")) << unknown;
  EXPECT_TRUE(has(unknown, "CUDAARCHS=")) << unknown;
  const std::string cupy =
      list("cupy_cuda12x-14.2.0-py3-none-any.whl", "cupy/_core/a.cpython-311.so", "cupy_cuda12x 14.2.0");
  EXPECT_FALSE(has(cupy, "TORCH_CUDA_ARCH_LIST")) << cupy;
  EXPECT_TRUE(
      has(cupy, "CUPY_NVCC_GENERATE_CODE=\"arch=compute_80,code=sm_80;arch=compute_90,code=compute_90\""))
      << cupy;
  const std::string runtime =
      list("venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime_providers_cuda.so");
  EXPECT_TRUE(has(runtime, "CMAKE_CUDA_ARCHITECTURES=80\"")) << runtime;
  EXPECT_FALSE(has(runtime, "TORCH_CUDA_ARCH_LIST")) << runtime;
  EXPECT_TRUE(has(list("/var/build/.cache/torch_extensions/py311/a.so"), "TORCH_CUDA_ARCH_LIST"));
  EXPECT_TRUE(has(list("x.whl", "vllm/_C.abi3.so", "vllm 0.12"), "TORCH_CUDA_ARCH_LIST"));
}

TEST_F(Advising, PyTorchItselfIsInstalledFromTheRightIndex) {
  add_module({{"90", {"k"}}});
  const std::string said =
      advice("7.0", "torch-2.9.1-cp311.whl", "torch/lib/libtorch_cuda.so", "torch 2.9.1");
  EXPECT_TRUE(has(said, "download.pytorch.org/whl/cu126")) << said;
  EXPECT_TRUE(has(said, "setup.py bdist_wheel")) << said;
  EXPECT_FALSE(has(said, "--no-binary :all:")) << said;
  EXPECT_TRUE(has(advice("8.7", "libtorch_cuda.so"), "Jetson")) << "no wheel of PyTorch's own";
}

TEST_F(Advising, ALibraryOfNvidiasIsNotRebuilt) {
  add_module({{"90", {"k"}}});  // of CUDA 12.8, as the version of its PTX says
  const std::string cublas = advice("8.7", "/usr/local/cuda/lib64/libcufft.so.12");
  EXPECT_TRUE(has(cublas, "Use a version of libcufft.so.12 that has sm_87")) << cublas;
  EXPECT_FALSE(has(cublas, "11.4")) << "it is newer itself: " << cublas;
  EXPECT_FALSE(has(cublas, "nvcc")) << cublas;
  // CUDA 12.8 has dropped Kepler: an older one has the libraries that come with it, and no others.
  EXPECT_TRUE(has(advice("3.5", "libcufft.so.12"), "CUDA 8.0 to 11.8 include code for sm_35"));
  const std::string nccl = advice("3.5", "libnccl.so.2");
  EXPECT_FALSE(has(nccl, "bring code")) << nccl;
  EXPECT_TRUE(has(nccl, "that has sm_35")) << nccl;
  EXPECT_FALSE(has(advice("8.0", "libcufft_static.a", "a.o"), "nvcc"));
  EXPECT_FALSE(has(advice("8.0", "bin/cudnn64_8.dll"), "nvcc"));
  EXPECT_TRUE(has(advice("8.0", "libcudf.so"), "cmake -S cpp")) << "anybody can build it";
}

// Whatever of a file lacks whatever GPU: nobody but its vendor builds it.
TEST_F(Advising, NoBuildIsAdvisedForAVendorsClosedLibrary) {
  add_module({{"75", {"k"}}, {"90a", {"k"}}});
  add_module({{"90", {"other"}}});
  std::vector<std::string> files = {"libcublas.so.13",
                                    "libcublasLt.so.13",
                                    "libcudnn_engines_precompiled.so.9",
                                    "libnvinfer.so.10",
                                    "libnvinfer_builder_resource_sm90.so.10.13.0",
                                    "libnccl.so.2",
                                    "libcusparse.so.12",
                                    "cudnn64_9.dll",
                                    "nvinfer_10.dll"};
  for (const VendorLibraryRow& row : vendor_libraries())
    files.push_back("lib" + std::string(row.prefix) + ".so.1");
  std::size_t judged = 0;
  const auto expect_none = [&](const std::string& path, const std::string& member,
                               const std::string& package) {
    for (const char* target : {"5.0", "7.5", "8.0", "12.0"}) {
      const std::string said = advice(target, path, member, package);
      for (const Finding& finding : findings_) {
        ++judged;
        for (const Fix& fix : finding.fixes)
          EXPECT_NE(fix.kind, FixKind::rebuild) << path << member << "\n" << said;
        EXPECT_FALSE(is_for_fleet(finding)) << path << member;
      }
      for (const char* word : {"nvcc", "gencode", "CUDAARCHS", "ARCH_LIST", "cmake", "--no-binary"})
        EXPECT_FALSE(has(said, word)) << path << member << "\n" << said;
    }
  };
  for (const std::string& file : files) {
    expect_none("/usr/lib/x86_64-linux-gnu/" + file, {}, {});
    expect_none("venv/lib/python3.11/site-packages/nvidia/x/lib/" + file, {}, "nvidia-x-cu13 13.0");
    expect_none("tensorrt-10.0-py3-none-any.whl", "tensorrt_libs/" + file, "tensorrt_cu13_libs 10.0");
  }
  expect_none("/usr/local/cuda/lib64/libcufft_static.a", "fft.o", {});
  expect_none("toolkit.whl", "nvidia/lib/libcublas_static.a!gemm.o", {});
  EXPECT_GT(judged, 100U);
  advice("5.0", "libmine.so");
  EXPECT_TRUE(is_for_fleet(findings_.at(0))) << "what anybody can build";
}

TEST_F(Advising, AKernelThatIsGuardedOutIsAMatterOfTheSource) {
  add_module({{"80", {"common"}}, {"90", {"common", "hopper"}}});
  const std::string said = advice("8.0", "liba.so", {}, {}, true);
  ASSERT_EQ(findings_.size(), 1U);
  EXPECT_TRUE(has(said, "it is compiled into compute_90 only")) << said;
  EXPECT_FALSE(has(said, "nvcc")) << said;
  EXPECT_EQ(title_of(findings_[0]), "liba.so: 1 of 2 kernels has no code for sm_80");
}

// Of cubins alone, which nothing reads here.
Facts facts_of(std::initializer_list<std::string_view> cubins, std::string_view device) {
  Facts facts;
  facts.gpu.cc = image::parse_arch(device)->cc;
  facts.images.scope = ImageScope::module;
  for (const std::string_view name : cubins) {
    ImageFact image;
    image.candidate = {ImageKind::cubin, *image::parse_arch(name), {}};
    facts.images.list.push_back(image);
  }
  return facts;
}

TEST(Words, OfLockedCodeNameTheLockedImages) {
  Finding finding;
  finding.cause = Cause::arch_specific_image;
  finding.confidence = 0.97;
  finding.object = "libx.so";
  finding.have = {"sm_75", "sm_80", "sm_90a", "sm_120f"};
  finding.devices = {target_device(image::ComputeCapability{8, 9})};
  EXPECT_EQ(title_of(finding), "libx.so is locked to sm_90a and sm_120f and does not run on sm_89");
  finding.have = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};
  finding.devices = {target_device(image::ComputeCapability{12, 1})};
  EXPECT_EQ(title_of(finding), "libx.so is locked to sm_100a and sm_120a and does not run on sm_121")
      << "the nearest";
}

// The module is of CUDA 12.8, which has dropped 3.5. What loads libcusparse.so.12 loads none of CUDA 11.
TEST_F(Advising, ALibraryOfAnotherMajorHelpsNothingThatLoadsThisOne) {
  add_module({{"90", {"k"}}});
  const std::string cusparse =
      advice("3.5", "x.whl", "nvidia/cusparse/lib/libcusparse.so.12", "nvidia_cusparse_cu12 12.5");
  EXPECT_FALSE(has(cusparse, "pip install nvidia-cusparse-cu11")) << cusparse;
  EXPECT_TRUE(has(cusparse, "Use a build for CUDA 11 of what loads libcusparse.so.12")) << cusparse;
  const std::string nccl = advice("3.5", "x.whl", "nvidia/nccl/lib/libnccl.so.2", "nvidia_nccl_cu13 2.32");
  EXPECT_FALSE(has(nccl, "pip install")) << "its own releases decide: " << nccl;
}

TEST_F(Advising, WhatIsCountedIsNotProbable) {
  add_module({{"80", {"one"}}});
  add_module({{"90", {"two"}}});
  advice("8.0", "liba.so");
  ASSERT_EQ(findings_.size(), 1U);
  EXPECT_EQ(title_of(findings_[0]), "liba.so: 1 of 2 modules has no code for sm_80");
  EXPECT_TRUE(counts(findings_[0]));
}

TEST(TorchLink, IsToldByWhatAFileIsLinkedWith) {
  const auto links = [](const std::string& file) {
    return links_torch(elf_facts(Bytes(reinterpret_cast<const std::byte*>(file.data()), file.size())));
  };
  const auto linked_with = [](const char* name) { return DynamicElf("", {"libm.so.6", name}).bytes(); };
  EXPECT_TRUE(links(linked_with("libc10.so")));
  EXPECT_TRUE(links(linked_with("libtorch_cuda.so")));
  EXPECT_FALSE(links(linked_with("libcudart.so.12")));
  EXPECT_FALSE(links(linked_with("mylibtorch.so")));
  EXPECT_FALSE(links(""));
  const std::string whole = linked_with("libc10.so");
  for (std::size_t size = 0; size < whole.size(); ++size) links(whole.substr(0, size));
}

TEST(OldDriver, CannotReadWhatIsCompressedWithZstandard) {
  Facts facts = facts_of({"8.0"}, "8.0");
  facts.images.list[0].compression = image::Compression::zstd;
  facts.driver.cuda = {12, 3};
  EXPECT_EQ(diagnosis_of(facts).cause, Cause::driver_too_old_for_image);
  EXPECT_FALSE(judge_image(facts.images.list[0], facts).fits);
  facts.driver.cuda = {12, 4};
  EXPECT_NE(diagnosis_of(facts).cause, Cause::driver_too_old_for_image);
  EXPECT_TRUE(judge_image(facts.images.list[0], facts).fits);
}

TEST(OldDriver, SaysOnceATargetThatItDoesNotKnowTheGpu) {
  const auto arch = [](std::string_view text) { return *image::parse_arch(text); };
  const auto found = old_driver_findings({arch("12.1"), arch("8.0"), arch("sm_121a")}, {11, 0});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].cause, Cause::driver_too_old);
  EXPECT_EQ(found[0].severity, Severity::error);
  EXPECT_EQ(found[0].need, "sm_121");
  EXPECT_TRUE(has(found[0].headline, "11.0")) << found[0].headline;
  EXPECT_TRUE(has(found[0].headline, "12.9")) << found[0].headline;
  EXPECT_TRUE(old_driver_findings({arch("12.1")}, {12, 9}).empty());
  EXPECT_TRUE(old_driver_findings({arch("12.1")}, {}).empty()) << "not told: the newest";
}

}  // namespace
}  // namespace kshim::test
