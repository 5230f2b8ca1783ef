// SPDX-License-Identifier: Apache-2.0
// Which release is recommended: an older one that still serves the GPU before any build, another package of
// the same project, and never what pip cannot do. The tables are those of tests/knowledge.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

Situation installed(const char* package, const char* version, ComputeCapability device) {
  Situation at;
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

TEST(OlderReleases, ComeBeforeABuild) {
  for (const Case& row : {
           Case{"onnxruntime-gpu", "1.30.0", {6, 1}, "'onnxruntime-gpu==1.26.*'"},
           Case{"cudf-cu12", "26.10.0", {6, 1}, "'cudf-cu12==23.12.*'"},
           Case{"warp-lang", "1.19.0", {6, 1}, "'warp-lang==1.15.*'"},
           Case{"bitsandbytes", "0.49.1", {5, 2}, "'bitsandbytes==0.47.*'"},  // sm_50 runs on 5.2
           Case{"xformers", "0.0.27.post2", {5, 2}, "'xformers==0.0.26.*'"},
           Case{"vllm", "0.20.2", {7, 0}, "'vllm==0.19.*'"},
           Case{"ctranslate2", "", {12, 0}, "'ctranslate2==4.8.*'"},
           Case{"faiss-gpu-cu12", "1.14.1", {12, 0}, "'faiss-gpu==1.15.*'"},
       }) {
    const Advice advice = advise(installed(row.package, row.version, row.device));
    ASSERT_FALSE(advice.fixes.empty()) << row.package;
    EXPECT_NE(join(advice.fixes.front().commands, "\n").find(row.first), std::string::npos)
        << row.package << " " << row.version << ":\n"
        << commands_of(advice);
  }
}

// PyPI's newer releases are for another CUDA, and what is there has the code.
TEST(OlderReleases, AReleaseThatServesIsNotReplaced) {
  const Advice advice = advise(installed("onnxruntime-gpu", "1.23.2", {7, 0}));
  EXPECT_EQ(commands_of(advice).find("onnxruntime-gpu=="), std::string::npos) << commands_of(advice);
}

TEST(OlderReleases, PipIsNotAskedToBuildWhatHasNoSource) {
  for (const char* package : {"warp-lang", "warp_lang", "faiss-gpu-cu12", "fbgemm-gpu", "ctranslate2"}) {
    const Advice advice = advise(installed(package, "0.0.1", {3, 0}));
    EXPECT_EQ(commands_of(advice).find("--no-binary"), std::string::npos) << package << ":\n"
                                                                          << commands_of(advice);
  }
  EXPECT_TRUE(is_without_source("warp-lang"));
  EXPECT_FALSE(is_without_source("flash-attn"));
}

// PyTorch's fix helps bitsandbytes only where one of its libraries has the code.
TEST(OlderReleases, AnotherPyTorchIsNoAnswerForAPackageThatLacksTheCode) {
  const auto torch = [](const char* version, ComputeCapability device) {
    return commands_of(advise(installed("bitsandbytes", version, device))).find("torch") != std::string::npos;
  };
  EXPECT_FALSE(torch("0.49.1", {5, 2}));
  EXPECT_TRUE(torch("0.49.1", {6, 1})) << "its libraries for CUDA 11.8 to 12.6 have sm_60";
}

TEST(OlderReleases, AReleaseThatIsNewerThanTheTablesIsNamedSo) {
  const auto said = [](const char* version) {
    const Advice advice = advise(installed("torch", version, {6, 1}));
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
}  // namespace kshim::analysis
