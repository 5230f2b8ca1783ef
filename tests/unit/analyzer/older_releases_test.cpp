// SPDX-License-Identifier: Apache-2.0
// Which release is recommended: an older one that still serves the GPU before any build, another package of
// the same project, and never what pip cannot do. The tables are those of tests/knowledge.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::test {
namespace {

using image::ComputeCapability;

AdviceInput installed(const char* package, const char* version, ComputeCapability device) {
  AdviceInput at;
  at.cause = Cause::no_image_for_arch;
  at.package = package;
  at.package_version = version;
  at.manager = "pip";
  at.origin = Origin::installed;
  at.device = device;
  at.python = true;
  return at;
}

std::string commands_of(const Advice& advice) {
  std::string out;
  for (const Fix& fix : advice.fixes) out += join(fix.commands, "\n") + "\n";
  return out;
}

struct Case {
  const char* package;
  const char* version;
  ComputeCapability device;
  const char* first;  ///< part of the first fix's commands
};

// What somebody who knows the project says first. Where a release that is named here is not that of the
// expert, it is a newer one that serves the GPU as well.
TEST(OlderReleases, ComeBeforeABuild) {
  for (const Case& row : {
           Case{"torch",
                "2.7.1+cu126",
                {12, 0},
                "'torch==2.7.1' torchvision torchaudio --index-url "
                "https://download.pytorch.org/whl/cu128"},
           Case{"torch", "2.15.0", {6, 1}, "whl/cu126"},
           Case{"torch", "2.11.0+cu130", {7, 0}, "whl/cu126"},
           Case{"onnxruntime-gpu", "1.30.0", {6, 1}, "'onnxruntime-gpu==1.26.*'"},
           Case{"onnxruntime-gpu", "1.30.0", {7, 0}, "'onnxruntime-gpu==1.26.*'"},
           Case{"onnxruntime-gpu", "1.20.1", {12, 0}, "'onnxruntime-gpu==1.27.*'"},
           Case{"cudf-cu12", "26.10.0", {6, 1}, "'cudf-cu12==23.12.*'"},
           Case{"cudf-cu12", "24.12.0", {6, 1}, "'cudf-cu12==23.12.*'"},
           Case{"libcudf-cu12", "26.10.2", {6, 1}, "'cudf-cu12==23.12.*'"},
           Case{"cuml-cu12", "26.8.0", {6, 1}, "'cuml-cu12==23.12.*'"},
           Case{"libcugraph-cu12", "26.10.0", {6, 0}, "'cugraph-cu12==23.12.*'"},
           Case{"warp-lang", "1.19.0", {6, 1}, "'warp-lang==1.15.*'"},
           Case{"warp_lang", "1.19.0", {7, 0}, "'warp-lang==1.15.*'"},
           Case{"bitsandbytes", "0.49.1", {5, 2}, "'bitsandbytes==0.47.*'"},  // sm_50 runs on 5.2
           Case{"bitsandbytes", "0.48.2", {5, 2}, "'bitsandbytes==0.47.*'"},
           Case{"xformers", "0.0.27.post2", {5, 2}, "'xformers==0.0.26.*'"},
           Case{"xformers", "0.0.31", {7, 0}, "'xformers==0.0.30.*'"},
           Case{"vllm", "0.20.2", {7, 0}, "'vllm==0.19.*'"},
           Case{"ctranslate2", "", {12, 0}, "'ctranslate2==4.8.*'"},
           Case{"faiss-gpu-cu12", "1.14.1", {12, 0}, "'faiss-gpu==1.15.*'"},
           Case{"faiss", "1.14.1", {12, 0}, "'faiss-gpu==1.15.*'"},
       }) {
    const Advice advice = advise_on(installed(row.package, row.version, row.device));
    ASSERT_FALSE(advice.fixes.empty()) << row.package;
    EXPECT_NE(join(advice.fixes.front().commands, "\n").find(row.first), std::string::npos)
        << row.package << " " << row.version << ":\n"
        << commands_of(advice);
  }
}

// What is there has the code: machine code, or PTX that its driver compiles.
TEST(OlderReleases, AReleaseThatServesIsNotReplaced) {
  for (const Case& row : {Case{"onnxruntime-gpu", "1.23.2", {7, 0}, "onnxruntime-gpu=="},
                          Case{"onnxruntime-gpu", "1.16.3", {8, 9}, "onnxruntime-gpu=="}}) {
    const Advice advice = advise_on(installed(row.package, row.version, row.device));
    EXPECT_EQ(commands_of(advice).find(row.first), std::string::npos) << commands_of(advice);
  }
}

// A K80: PyTorch 2.4 to 2.7 for CUDA 11.8 have sm_37, and their cuDNN 9.1 begins with 5.0.
TEST(OlderReleases, WhatComesAlongServesTheGpuToo) {
  const Advice advice = advise_on(installed("torch", "2.7.1+cu126", {3, 7}));
  ASSERT_FALSE(advice.fixes.empty());
  const std::string first = join(advice.fixes.front().commands, "\n");
  EXPECT_NE(first.find("'torch==2.3.*'"), std::string::npos) << first;
  EXPECT_NE(first.find("whl/cu118"), std::string::npos) << first;
  EXPECT_NE(advice.fixes.front().caveat.find("cuDNN 9.1.0.70"), std::string::npos)
      << advice.fixes.front().caveat;
  // Maxwell is served by it.
  EXPECT_NE(commands_of(advise_on(installed("torch", "2.7.1+cu128", {5, 2}))).find("'torch==2.7.1'"),
            std::string::npos);
}

// PyTorch failed, and what is built on it would as well.
TEST(OlderReleases, AnExtensionThatLacksTheCodeIsReplacedAndNotPyTorch) {
  EXPECT_TRUE(is_without_code("vllm", "0.20.2", {7, 0}, kLinux));
  EXPECT_FALSE(is_without_code("vllm", "0.19.1", {7, 0}, kLinux));
  EXPECT_FALSE(is_without_code("vllm", "99.1", {7, 0}, kLinux)) << "nobody knows";
  EXPECT_FALSE(is_without_code("transformers", "5.0", {7, 0}, kLinux));
}

TEST(OlderReleases, ThatNoPublishedWheelHasItIsAnAnswer) {
  const Advice advice = advise_on(installed("faiss-gpu-cu12", "1.14.1", {3, 7}));
  EXPECT_EQ(commands_of(advice).find("faiss-gpu"), std::string::npos) << commands_of(advice);
  EXPECT_TRUE(std::any_of(advice.remarks.begin(), advice.remarks.end(), [](const std::string& remark) {
    return remark.find("No build of faiss") != std::string::npos;
  }));
}

TEST(OlderReleases, PipIsNotAskedToBuildWhatHasNoSource) {
  for (const char* package : {"warp-lang", "warp_lang", "faiss-gpu-cu12", "fbgemm-gpu", "ctranslate2"}) {
    const Advice advice = advise_on(installed(package, "0.0.1", {3, 0}));
    EXPECT_EQ(commands_of(advice).find("--no-binary"), std::string::npos) << package << ":\n"
                                                                          << commands_of(advice);
  }
  EXPECT_TRUE(is_without_source("warp-lang"));
  EXPECT_FALSE(is_without_source("flash-attn"));
}

// PyTorch's fix helps bitsandbytes only where one of its libraries has the code.
TEST(OlderReleases, AnotherPyTorchIsNoAnswerForAPackageThatLacksTheCode) {
  const auto torch = [](const char* version, ComputeCapability device) {
    return commands_of(advise_on(installed("bitsandbytes", version, device))).find("torch") !=
           std::string::npos;
  };
  EXPECT_FALSE(torch("0.49.1", {5, 2}));
  EXPECT_TRUE(torch("0.49.1", {6, 1})) << "its libraries for CUDA 11.8 to 12.6 have sm_60";
}

// A driver that ran CUDA 12.8 runs 12.6 and 11.8; of the builds for these, that for 11.8 ends with
// PyTorch 2.7.
TEST(OlderReleases, OfTwoOlderCudasThatWhichGoesOnIsTaken) {
  AdviceInput at = installed("torch", "2.7.1", {6, 1});
  at.variant = "cu128";
  EXPECT_NE(commands_of(advise_on(at)).find("/whl/cu126"), std::string::npos) << commands_of(advise_on(at));
  at.driver = {11, 8};
  EXPECT_NE(commands_of(advise_on(at)).find("/whl/cu118"), std::string::npos) << commands_of(advise_on(at));
}

TEST(OlderReleases, AReleaseThatIsNewerThanTheTablesIsNamedSo) {
  const auto said = [](const char* version) {
    const Advice advice = advise_on(installed("torch", version, {6, 1}));
    return std::any_of(advice.remarks.begin(), advice.remarks.end(), [&](const std::string& remark) {
      return remark.find(knowledge_date()) != std::string::npos;
    });
  };
  EXPECT_TRUE(said("99.1"));
  EXPECT_FALSE(said("2.9.1"));
  EXPECT_EQ(newest_known("torch"), "2.15");
  EXPECT_EQ(newest_known("no such"), "");
}

}  // namespace
}  // namespace kshim::test
