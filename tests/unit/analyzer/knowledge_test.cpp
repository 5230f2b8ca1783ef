// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "analyzer/advise/build_plan.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/data/frames.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/data/reach.h"
#include "analyzer/data/wheels.h"
#include "kshim/image/compute_capability.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::Version;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) out.emplace_back(word);
  }
  return out;
}

void expect_sources(std::string_view row, std::string_view ids) {
  EXPECT_FALSE(words(ids).empty()) << row << " has no source";
  for (const std::string& id : words(ids)) {
    EXPECT_TRUE(std::any_of(sources().begin(), sources().end(),
                            [&](const SourceRow& source) { return source.id == id; }))
        << row << " names the source " << id << ", which sources.json does not have";
  }
}

/// Calls visit(table, ids) for each row of each table that has sources.
template <class Visit>
void each_sources(Visit&& visit) {
  const auto each = [&](std::string_view table, const auto& rows) {
    for (const auto& row : rows)
      if constexpr (requires { row.sources; }) visit(table, row.sources);
  };
#define KSHIM_TABLE(section, Row, ...) each(#section, section());
#include "analyzer/data/tables.def"
  each("toolkits", toolkits());
  each("gpus", gpus());
  each("wheels", wheels());
  each("switches", switches());
}

TEST(Knowledge, EveryRowHasASourceWithADate) {
  const std::regex date("20[0-9]{2}-[01][0-9]-[0-3][0-9]");
  std::set<std::string_view> seen;
  for (const SourceRow& row : sources()) {
    EXPECT_TRUE(seen.insert(row.id).second) << row.id << " twice";
    EXPECT_FALSE(row.what.empty()) << row.id;
    EXPECT_TRUE(std::regex_match(std::string(row.date), date)) << row.id << ": " << row.date;
  }
  each_sources([](std::string_view table, std::string_view ids) {
    if (table != "message_fixes" || !ids.empty())
      expect_sources(table, ids);  // most of these follow from the message
  });
}

TEST(Knowledge, EverySourceIsUsed) {
  std::set<std::string> used;
  each_sources([&](std::string_view, std::string_view ids) {
    for (std::string& id : words(ids)) used.insert(std::move(id));
  });
  used.insert("fatbin_zstd");  // rules.cpp
  for (const SourceRow& row : sources()) EXPECT_TRUE(used.count(std::string(row.id)) != 0) << row.id;
}

TEST(Toolkits, AscendAndAreWellFormed) {
  Version before;
  Version isa_before;
  unsigned branch_before = 0;
  for (const ToolkitRow& row : toolkits()) {
    EXPECT_LT(before, row.version);
    EXPECT_LE(isa_before, row.isa);
    EXPECT_EQ(image::ptx_isa_of_cuda(row.version), row.isa) << "the image library has another";
    EXPECT_TRUE(
        builds_for(row, {image::ComputeCapability::from_number(row.default_arch), image::Suffix::none}));
    if (!row.driver.empty()) {  // it is published later than the toolkit
      EXPECT_LE(branch_before, branch_of(row.driver));
      branch_before = branch_of(row.driver);
    }
    before = row.version;
    isa_before = row.isa;
  }
}

TEST(Toolkits, NeverReviveAnArchitecture) {
  for (const GpuRow& gpu : gpus()) {
    const image::Arch arch{gpu.cc, image::Suffix::none};
    bool was = false;
    bool gone = false;
    for (const ToolkitRow& row : toolkits()) {
      const bool now = builds_for(row, arch);
      EXPECT_FALSE(gone && now) << image::to_name(gpu.cc).view() << " comes back in "
                                << image::to_name(row.version).view();
      gone = gone || (was && !now);
      was = was || now;
    }
    EXPECT_TRUE(was) << "no toolkit builds for " << image::to_name(gpu.cc).view();
  }
}

TEST(Toolkits, AgreeWithTheGpusTable) {
  for (const GpuRow& gpu : gpus()) {
    const ToolkitRow* first = first_toolkit_for({gpu.cc, image::Suffix::none});
    ASSERT_NE(first, nullptr);
    if (gpu.first_toolkit < toolkits().front().version) continue;  // older than the table
    EXPECT_EQ(image::to_name(first->version).view(), image::to_name(gpu.first_toolkit).view())
        << "first toolkit for " << image::to_name(gpu.cc).view();
  }
}

TEST(Gpus, AgreeWithTheImageLibrary) {
  for (const GpuRow& gpu : gpus()) {
    const auto* row = image::find_compute_capability(gpu.cc);
    ASSERT_NE(row, nullptr) << image::to_name(gpu.cc).view();
    EXPECT_EQ(row->tegra, gpu.tegra) << image::to_name(gpu.cc).view();
    EXPECT_EQ(row->first_toolkit, gpu.first_toolkit) << image::to_name(gpu.cc).view();
    const ToolkitRow* last = last_toolkit_for({gpu.cc, image::Suffix::none});
    ASSERT_NE(last, nullptr);
    const bool ongoing = last == &toolkits().back();
    EXPECT_EQ(row->last_toolkit.known(), !ongoing) << image::to_name(gpu.cc).view();
    if (!ongoing) {
      EXPECT_EQ(row->last_toolkit, last->version) << image::to_name(gpu.cc).view();
    }
  }
}

TEST(Gpus, NameTheLastDriver) {
  EXPECT_EQ(last_driver_cuda(*find_gpu({6, 1})), (Version{13, 0}));
  EXPECT_EQ(last_driver_cuda(*find_gpu({3, 7})), (Version{11, 4}));
  EXPECT_FALSE(last_driver_cuda(*find_gpu({8, 6})).known());
  EXPECT_EQ(find_gpu({4, 2}), nullptr);
}

TEST(Toolkits, AreFoundByVersion) {
  EXPECT_EQ(toolkit_at_most({12, 7})->version, (Version{12, 6}));
  EXPECT_EQ(toolkit_at_most({99, 0})->version, toolkits().back().version);
  EXPECT_EQ(toolkit_at_most({5, 0}), nullptr);
  EXPECT_EQ(find_toolkit({12, 7}), nullptr) << "there was none";
  EXPECT_EQ(toolkit_of_isa({8, 5})->version, (Version{12, 6})) << "of two with one ISA the newer";
  EXPECT_EQ(toolkit_of_isa({9, 9}), nullptr);
}

TEST(Toolkits, KnowTheLastThatBuilds) {
  EXPECT_EQ(last_toolkit_for({{6, 1}, image::Suffix::none})->version, (Version{12, 9}));
  EXPECT_EQ(last_toolkit_for({{3, 5}, image::Suffix::none})->version, (Version{11, 8}));
  EXPECT_EQ(first_toolkit_for({{9, 0}, image::Suffix::a})->version, (Version{12, 0}));
  EXPECT_EQ(first_toolkit_for({{12, 0}, image::Suffix::f})->version, (Version{12, 9}));
  EXPECT_EQ(last_toolkit_for({{9, 0}, image::Suffix::f}), nullptr) << "there is no sm_90f";
}

TEST(ProbingLibraries, AreKnownByFileName) {
  ASSERT_NE(find_probing_library("/x/y/libcusparseLt.so.0"), nullptr);
  ASSERT_NE(find_probing_library("libnccl.so.2"), nullptr);
  for (const char* dll :
       {"nvidia/cublas/bin/cublas64_12.dll", "cublasLt64_13.dll", "cudnn_ops64_9.dll", "cufft64_12.dll",
        "cusparse64_12.dll", "cusolver64_12.dll", "nvinfer_10.dll", "cutensor.dll"})
    EXPECT_NE(find_probing_library(dll), nullptr) << dll;
  EXPECT_EQ(find_probing_library("libcublasLt.so.13"), find_probing_library("cublasLt64_13.dll"));
  EXPECT_EQ(find_probing_library("cutensor.pyd"), nullptr);
  EXPECT_EQ(find_probing_library("/libnccl/libmine.so"), nullptr);
  EXPECT_EQ(find_probing_library(""), nullptr);
}

TEST(VendorLibraries, AreKnownByTheirWholeNames) {
  for (const char* name :
       {"/usr/local/cuda/lib64/libcufft.so.12", "libcublas_static.a", "cudnn64_8.dll", "libnccl.so"})
    EXPECT_NE(find_vendor_library(name), nullptr) << name;
  for (const char* name :
       {"libcudnn_ops.so.9", "libcublas-1a2b3c4d.so.11", "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0",
        "libcufftw.so.12", "libnppial.so.13", "libnvinfer_builder_resource_sm90.so.10.13.0",
        "cudart64_110.dll", "nvrtc64_130_0.dll", "x.whl!lib/libcupti_static.a!libcupti_partial.o",
        "x.whl!libnccl.so.2"})
    EXPECT_NE(find_vendor_library(name), nullptr) << name;
  for (const char* name : {"libcudf.so", "libcustom.so", "libnvidia/libmine.so", "cublas_test", "",
                           "libcufft_wrapper.so", "libcudnn_frontend.so", "libnccl-net-ofi.so",
                           "libcublas_helper.a", "libcusparse_ops.so.1", "libmine.a!libcupti.o"})
    EXPECT_EQ(find_vendor_library(name), nullptr) << name;
  EXPECT_FALSE(find_vendor_library("libcusparseLt.so.0")->part_of_cuda);
  EXPECT_TRUE(find_vendor_library("libcusparse.so.12")->part_of_cuda);
}

TEST(Builds, AreFoundByPackageNameAndFolder) {
  const auto recipe = [](std::string_view package, std::string_view path) {
    const BuildRow* row = find_build(package, path);
    return row != nullptr ? std::optional(row->recipe) : std::nullopt;
  };
  EXPECT_EQ(recipe("CuPy-cuda12x", "x.so"), "cupy");
  EXPECT_EQ(recipe("", "/v/site-packages/cupy/_core/core.cpython-311-x86_64-linux-gnu.so"), "cupy");
  EXPECT_EQ(recipe("torch", "torch/lib/libx.so"), "torch_itself");
  EXPECT_EQ(recipe("", "/x/libtorch_cuda.so"), "torch_itself");
  EXPECT_EQ(recipe("torch_scatter", "torch_scatter/_scatter_cuda.so"), std::nullopt);
  EXPECT_EQ(recipe("vllm_flash_attn", "vllm_flash_attn_2_cuda.so"), "torch") << "a project of its own";
  EXPECT_EQ(recipe("vllm", "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so"), "vllm");
  EXPECT_EQ(recipe("onnxruntime_genai_cuda", "onnxruntime-genai-cuda.dll"), std::nullopt);
  EXPECT_EQ(recipe("onnxruntime_gpu", "x.so"), "onnxruntime");
  EXPECT_EQ(recipe("", "/home/me/torch/mine.so"), std::nullopt);
  EXPECT_EQ(recipe("", ""), std::nullopt);
}

// PyPI has torch up to 1.7 for the CUDA that its rows name.
TEST(Installers, OfOldPyTorchAskPypi) {
  EXPECT_FALSE(contains(find_installer("torch", "pip", "1.2")->command, "--index-url"));
  EXPECT_TRUE(contains(find_installer("torch", "pip", "1.13")->command, "--index-url"));
  EXPECT_TRUE(contains(find_installer("torch", "pip")->command, "--index-url"));
}

TEST(Toolkits, OfADriverBranch) {
  EXPECT_EQ(toolkit_of_branch(580)->version, (Version{13, 0}));
  EXPECT_EQ(toolkit_of_branch(571)->version, (Version{12, 8})) << "of Windows";
  EXPECT_EQ(toolkit_of_branch(340), nullptr);
  EXPECT_EQ(toolkit_of_branch(999), nullptr) << "newer than any row";
}

TEST(RecipeRows, HoldOnlyPlaceholdersThatAreFilled) {
  const auto plan = plan_build({}, {8, 6}, toolkits().back(), {});
  ASSERT_TRUE(plan.has_value());
  for (const RecipeRow& row : recipes()) {
    const std::string command =
        text_of(command_of(Build{.recipe = &row, .plan = *plan, .toolkit = "/t", .output = "o"}));
    EXPECT_EQ(command.find('{'), std::string::npos) << command;
    const std::string list = arch_list(*plan, row.list);
    EXPECT_FALSE(list.empty()) << row.name;
    const bool told = command.find(list) != std::string::npos || row.id == "flash_attn_nvcc";
    EXPECT_TRUE(told) << command;
  }
}

TEST(RecipeRows, AreThereForWhatNamesThem) {
  for (const BuildRow& row : builds()) EXPECT_EQ(find_recipe(row.recipe).id, row.recipe);
  for (const char* id : {"nvcc", "nvcc_library", "nvcc_object", "nvcc_fatbin", "cmake", "cmake_toolkit",
                         "torch", "torch_toolkit", "torch_itself", "flash_attn", "flash_attn_nvcc", "make",
                         "make_sms", "meson", "bazel", "extension", "extension_cmake"})
    EXPECT_EQ(find_recipe(id).id, id);
}

TEST(RecipeRows, AValueIsNotExpandedAgain) {
  const auto plan = plan_build({}, {8, 6}, toolkits().back(), {});
  const Build build{.recipe = &find_recipe("nvcc"), .plan = *plan, .output = "{list}"};
  EXPECT_NE(text_of(command_of(build)).find("-o {list} "), std::string::npos);
}

TEST(RecipeRows, RelocatableCodeStaysRelocatable) {
  const auto plan = plan_build({}, {8, 6}, toolkits().back(), {});
  for (const char* recipe : {"nvcc", "nvcc_library"}) {
    const Build build{.recipe = &find_recipe(recipe), .plan = *plan, .mode = " -rdc=true"};
    EXPECT_TRUE(text_of(command_of(build)).starts_with("nvcc -rdc=true -"));
  }
}

}  // namespace
}  // namespace kshim::test
