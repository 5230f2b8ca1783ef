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
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ComputeCapability;

Facts installed(const char* package, const char* version, ComputeCapability device) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.package.name = package;
  at.package.version = version;
  at.package.manager = "pip";
  at.file.origin = Origin::installed;
  at.gpu.cc = device;
  at.process.python = true;
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

std::string first_of(const Advice& advice) {
  return advice.fixes.empty() ? std::string() : join(advice.fixes.front().commands, "\n");
}

// bitsandbytes takes its library for the CUDA that PyTorch is built for.
TEST(OlderReleases, AreOfThePackageWhereThePyTorchThatIsThereServesTheGpu) {
  Facts at = installed("bitsandbytes", "0.45.1", {12, 0});
  at.process.torch = true;
  at.package.torch_build = "2.7.1+cu128";
  EXPECT_TRUE(contains(first_of(advise_on(at)), "'bitsandbytes==0.45.3")) << commands_of(advise_on(at));
  EXPECT_FALSE(contains(commands_of(advise_on(at)), "torch")) << commands_of(advise_on(at));
}

TEST(OlderReleases, AreOfBothWhereNeitherServesTheGpu) {
  Facts at = installed("bitsandbytes", "0.45.1", {12, 0});
  at.process.torch = true;
  at.package.torch_build = "2.4.1+cu121";
  const std::string first = first_of(advise_on(at));
  EXPECT_TRUE(contains(first, "'bitsandbytes==0.45.3")) << first;
  EXPECT_TRUE(contains(first, "whl/cu128")) << first;
}

// The build of PyTorch that is proposed is one for which that release has a library with the code.
TEST(OlderReleases, OfALeaderHaveALibraryOfTheFollower) {
  for (const WheelRow& row : wheels()) {
    if (row.distribution != "bitsandbytes" || row.platform != kLinux) continue;
    for (const ComputeCapability device : {ComputeCapability{6, 1}, {7, 0}, {9, 0}, {12, 0}}) {
      Facts at = installed("bitsandbytes", "", device);
      at.package.version = row.last;
      for (const Fix& fix : advise_on(at).fixes) {
        const auto value = [&](std::string_view name) {
          for (const auto& [key, text] : fix.arguments)
            if (key == name) return text;
          return std::string();
        };
        if (value("package") != "torch") continue;
        const WheelRow* library = find_wheel("bitsandbytes", row.last, value("variant"));
        ASSERT_NE(library, nullptr) << row.last << " " << value("variant");
        EXPECT_NE(serves(*library, device), image::Choice::none) << row.last << " " << value("variant");
      }
    }
  }
}

// A release that nobody looked into is named as such, and one that somebody did is not.
TEST(OlderReleases, SayWhereTheyAreNotVerified) {
  std::size_t doubted = 0;
  std::size_t sure = 0;
  for (const WheelRow& row : wheels()) {
    if (row.wheels.empty()) continue;
    for (const std::string_view release : {row.first, row.last}) {
      for (const ComputeCapability device : {ComputeCapability{6, 1}, {7, 0}, {9, 0}, {12, 0}}) {
        Facts at = installed("", "", device);
        at.package.name = row.distribution;
        at.package.version = release;
        at.package.platform = row.platform;
        for (const Fix& fix : advise_on(at).fixes) {
          if (fix.id != "install-build" || fix.arguments.size() != 3) continue;
          const WheelRow* named = find_wheel(fix.arguments[0].second, fix.arguments[1].second,
                                             fix.arguments[2].second, row.platform);
          if (named == nullptr || named->wheels.empty()) continue;
          const bool doubt = basis_of(*named, fix.arguments[1].second) == Basis::interpolated;
          EXPECT_EQ(contains(fix.caveat, "not verified"), doubt)
              << row.distribution << " " << release << ": " << fix.caveat;
          ++(doubt ? doubted : sure);
        }
      }
    }
  }
  EXPECT_GT(doubted, 0U);
  EXPECT_GT(sure, 100U);
}

// Nobody outside its maker need have the source of what pip installed as a file.
TEST(OlderReleases, ComeBeforeASourceThatNobodyIsKnownToHave) {
  Facts at = installed("closed-kernels-cu12", "0.19.0", {12, 0});
  at.file.path = "/v/lib/python3.11/site-packages/closed_kernels/libclosed.so";
  at.file.shared_library = true;
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_80"), {}}};
  const Advice advice = advise_on(at);
  ASSERT_FALSE(advice.fixes.empty());
  EXPECT_EQ(advice.fixes.front().id, "take-release-with-code");
  EXPECT_FALSE(contains(commands_of(advice), "closed-kernels")) << commands_of(advice);
  for (const Fix& fix : advice.fixes)
    EXPECT_FALSE(fix.id == "rebuild" && fix.title.starts_with("Build ")) << fix.title;
  at.package.source = "/home/u/closed";  // built here
  EXPECT_EQ(advise_on(at).fixes.front().id, "rebuild");
}

// A wheel of Windows gets commands that run there.
TEST(OlderReleases, OfWindowsAreInstalledThere) {
  for (const char* package : {"bitsandbytes", "torch", "closed-kernels", "onnxruntime-gpu", "xformers"}) {
    for (const char* file : {"/w/site-packages/p/p_cuda.dll", "/w/p-1.0-cp311-cp311-win_amd64.whl",
                             "/w/p/_C.cp311-win_amd64.pyd"}) {
      Facts at = installed(package, "0.30.0", {12, 0});
      at.file.path = file;
      at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_80"), {}}};
      for (const Fix& fix : advise_on(at).fixes)
        for (const std::string& command : fix.commands) {
          for (const char* posix : {"export ", "sudo ", "rm -", "env -u", "/usr/", "$(", "&& "})
            EXPECT_FALSE(contains(command, posix)) << package << ": " << command;
          const std::size_t mark = command.find('=');
          const bool assigns = mark != std::string::npos && mark != 0 &&
                               std::ranges::all_of(command.substr(0, mark),
                                                   [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
          EXPECT_FALSE(assigns) << package << ": " << command;
        }
    }
  }
}

// What loads libcublasLt.so.13 does not load that of CUDA 12: another build of what loads it is the way.
TEST(OlderReleases, OfALibraryAreOfTheSameMajorVersion) {
  Facts at = installed("nvidia-cublas", "13.0.0.19", {6, 1});
  at.file.path = "/v/lib/python3.11/site-packages/nvidia/cu13/lib/libcublasLt.so.13";
  at.images.toolkit = {13, 0};
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}}};
  EXPECT_FALSE(contains(commands_of(advise_on(at)), "-cu12")) << commands_of(advise_on(at));
  at.call.extension = "onnxruntime";
  EXPECT_TRUE(contains(first_of(advise_on(at)), "'onnxruntime-gpu==")) << commands_of(advise_on(at));
}

// pip is asked for what has the GPU's code, and for nothing that an index has under that name by accident.
TEST(OlderReleases, AreAskedForByTheNameThatPipKnows) {
  const auto told = [](const char* software, bool python) {
    Facts at;
    at.cause = Cause::library_not_found;
    at.call.message = "ld_missing";
    at.package.name = at.package.software = software;
    at.file.path = "libcublasLt.so.12";
    at.process.python = python;
    return commands_of(advise_on(at));
  };
  EXPECT_TRUE(contains(told("onnxruntime", true), "'onnxruntime-gpu[cuda,cudnn]'"))
      << told("onnxruntime", true);
  EXPECT_FALSE(contains(told("onnxruntime", true), "dir onnxruntime\n"));
  for (const char* other : {"dorado", "candle", "apex", "opencv"})
    EXPECT_FALSE(contains(told(other, true), "pip install")) << told(other, true);
  EXPECT_FALSE(contains(told("onnxruntime", false), "pip install")) << told("onnxruntime", false);
}

// A driver that ran CUDA 12.8 runs 12.6 and 11.8; of the builds for these, that for 11.8 ends with
// PyTorch 2.7.
TEST(OlderReleases, OfTwoOlderCudasThatWhichGoesOnIsTaken) {
  Facts at = installed("torch", "2.7.1", {6, 1});
  at.package.variant = "cu128";
  EXPECT_NE(commands_of(advise_on(at)).find("/whl/cu126"), std::string::npos) << commands_of(advise_on(at));
  at.driver.cuda = {11, 8};
  EXPECT_NE(commands_of(advise_on(at)).find("/whl/cu118"), std::string::npos) << commands_of(advise_on(at));
}

// Of a closed library, a version that has the GPU's code is no advice where each known one leaves it out.
TEST(OlderReleases, OfALibraryWithoutAReleaseForTheGpuNoneIsAsked) {
  Facts at = installed("nvidia-cusparselt-cu12", "0.6.2", {7, 5});
  at.file.path = "/venv/site-packages/nvidia/cusparselt/lib/libcusparseLt.so.0";
  const Advice none = advise_on(at);
  ASSERT_FALSE(none.fixes.empty());
  EXPECT_EQ(none.fixes.front().id, "do-without-library");
  at.gpu.cc = {8, 9};  // that of 8.6 runs there
  const Advice some = advise_on(at);
  EXPECT_TRUE(
      std::ranges::none_of(some.fixes, [](const Fix& fix) { return fix.id == "do-without-library"; }));
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
