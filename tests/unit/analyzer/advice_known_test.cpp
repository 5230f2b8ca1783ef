// SPDX-License-Identifier: Apache-2.0
// What people ask most: a package, its release, a GPU, and no file at hand. The first fix is the one that
// works.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analyzer/advise/advice.h"
#include "analyzer/core/text.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ComputeCapability;
using image::Version;

struct Known {
  const char* what;
  Cause cause;
  const char* software;
  const char* version;
  const char* variant;
  ComputeCapability device;
  Version driver;
  const char* manager;
  const char* first;  ///< in the commands of the first fix, or in its title where it has none
};

const Known kKnown[] = {
    {"the flavor of the same release",
     Cause::no_image_for_arch,
     "torch",
     "2.9.1",
     "cu128",
     {6, 1},
     {},
     "",
     "pip install --force-reinstall 'torch==2.9.1' torchvision torchaudio --index-url "
     "https://download.pytorch.org/whl/cu126"},
    {"PyPI's, which does not say what it is",
     Cause::no_image_for_arch,
     "torch",
     "2.15.0",
     "",
     {6, 1},
     {},
     "",
     "'torch==2.15.0' torchvision torchaudio --index-url https://download.pytorch.org/whl/cu126"},
    {"older than the GPU",
     Cause::no_image_for_arch,
     "torch",
     "2.4.1",
     "cu121",
     {12, 0},
     {13, 0},
     "",
     "'torch==2.7.*' torchvision torchaudio --index-url https://download.pytorch.org/whl/cu128"},
    {"the same with a driver for 12.8",
     Cause::no_image_for_arch,
     "torch",
     "2.4.1",
     "cu121",
     {12, 0},
     {12, 8},
     "",
     "'torch==2.7.*' torchvision torchaudio --index-url https://download.pytorch.org/whl/cu128"},
    {"Volta after 2.11 dropped it from cu128",
     Cause::no_image_for_arch,
     "torch",
     "2.11.0",
     "cu130",
     {7, 0},
     {},
     "",
     "'torch==2.11.0' torchvision torchaudio --index-url https://download.pytorch.org/whl/cu126"},
    {"the K80",
     Cause::no_image_for_arch,
     "torch",
     "2.9.1",
     "cu126",
     {3, 7},
     {},
     "",
     "'torch==2.3.*' torchvision torchaudio --index-url https://download.pytorch.org/whl/cu118"},
    {"Thor", Cause::no_image_for_arch, "torch", "2.9.1", "cu128", {11, 0}, {}, "", "whl/cu130"},
    {"Orin", Cause::no_image_for_arch, "torch", "2.9.1", "cu126", {8, 7}, {}, "", "NVIDIA's PyTorch wheel"},
    {"conda's",
     Cause::no_image_for_arch,
     "pytorch",
     "2.9.1",
     "",
     {6, 1},
     {},
     "conda",
     "conda install --override-channels -c conda-forge 'pytorch-gpu==2.9.1' torchvision torchaudio "
     "'cuda-version=12.9'"},
    {"torchvision for another PyTorch",
     Cause::no_image_for_arch,
     "torchvision",
     "0.24.1",
     "cu128",
     {6, 1},
     {},
     "",
     "pip install --force-reinstall torch 'torchvision==0.24.1' torchaudio --index-url "
     "https://download.pytorch.org/whl/cu126"},
    {"CuPy for CUDA 13",
     Cause::nvrtc_arch_unsupported,
     "cupy-cuda13x",
     "14.2.0",
     "",
     {6, 1},
     {},
     "",
     "pip uninstall -y cupy-cuda13x"},
    {"JAX for CUDA 13",
     Cause::no_image_for_arch,
     "jax",
     "0.9.0",
     "cuda13",
     {7, 0},
     {},
     "",
     "'jax[cuda12]==0.9.0'"},
    {"PaddlePaddle",
     Cause::no_image_for_arch,
     "paddlepaddle-gpu",
     "3.2.0",
     "cu129",
     {6, 1},
     {},
     "",
     "'paddlepaddle-gpu==3.2.0' -i https://www.paddlepaddle.org.cn/packages/stable/cu118/"},
    {"bitsandbytes without an image",
     Cause::no_image_for_arch,
     "bitsandbytes",
     "0.50.2",
     "cu128",
     {6, 1},
     {},
     "",
     "https://download.pytorch.org/whl/cu126"},
    {"TensorFlow on Blackwell",
     Cause::no_image_for_arch,
     "tensorflow",
     "2.20.0",
     "",
     {12, 0},
     {},
     "",
     "nvcr.io/nvidia/tensorflow:"},
    {"an older release alone has 10.0",
     Cause::no_image_for_arch,
     "onnxruntime-gpu",
     "1.31.1",
     "",
     {10, 0},
     {},
     "",
     "onnxruntime-gpu==1.28.*"},
    {"FlashAttention 2 is not for Turing",
     Cause::no_image_for_arch,
     "flash-attn",
     "2.8.3",
     "",
     {7, 5},
     {},
     "",
     "flash-attn in the program"},
    {"FlashAttention on Orin",
     Cause::no_image_for_arch,
     "flash-attn",
     "2.8.3",
     "",
     {8, 7},
     {},
     "",
     "NVCC_APPEND_FLAGS=\"-gencode arch=compute_87,code=sm_87\""},
    {"FlashAttention by its own numbers",
     Cause::no_image_for_arch,
     "flash-attn",
     "2.8.3",
     "",
     {8, 9},
     {},
     "",
     "FLASH_ATTN_CUDA_ARCHS=\"80\""},
    {"tiny-cuda-nn",
     Cause::no_image_for_arch,
     "tinycudann",
     "",
     "",
     {8, 6},
     {},
     "",
     "TCNN_CUDA_ARCHITECTURES=\"86\""},
    {"llama-cpp-python",
     Cause::no_image_for_arch,
     "llama-cpp-python",
     "",
     "",
     {12, 0},
     {},
     "",
     "CMAKE_ARGS=\"-DGGML_CUDA=ON -DGGML_NATIVE=OFF -DCMAKE_CUDA_ARCHITECTURES=120\""},
    {"OpenCV", Cause::library_refuses, "opencv", "4.9.0", "", {7, 5}, {}, "", "-DCUDA_ARCH_BIN=\"7.5\""},
    {"Kokkos", Cause::library_refuses, "kokkos", "", "", {5, 0}, {}, "", "-DKokkos_ARCH_MAXWELL50=ON"},
    {"FFmpeg's PTX",
     Cause::invalid_image,
     "libmine",
     "",
     "",
     {5, 2},
     {},
     "dpkg",
     "apt-get install --reinstall libmine"},
    {"Horovod", Cause::no_image_for_arch, "horovod", "", "", {7, 0}, {}, "", "HOROVOD_BUILD_CUDA_CC_LIST=70"},
    {"TensorRT before Ada",
     Cause::library_refuses,
     "TensorRT",
     "8.4.1.5",
     "",
     {8, 9},
     {},
     "",
     "'tensorrt>=8.5'"},
    {"TensorRT after Volta",
     Cause::library_refuses,
     "tensorrt",
     "10.6.0",
     "",
     {7, 0},
     {},
     "",
     "'tensorrt<10.5'"},
    {"TensorRT after Kepler",
     Cause::library_refuses,
     "TensorRT",
     "8.6.1",
     "",
     {3, 5},
     {},
     "",
     "TensorRT 8.5 or older"},
    {"cuDNN after Pascal",
     Cause::cudnn_mismatch,
     "cuDNN",
     "9.11.0",
     "",
     {6, 1},
     {},
     "",
     "'nvidia-cudnn-cu12<9.11'"},
    {"cuDNN before Blackwell",
     Cause::library_refuses,
     "cuDNN",
     "9.1.0",
     "",
     {12, 0},
     {},
     "",
     "'nvidia-cudnn-cu12>=9.7'"},
};

std::string lines_of(const Fix& fix) { return fix.title + "\n" + join(fix.commands, "\n"); }

class Advises : public ::testing::TestWithParam<Known> {};

TEST_P(Advises, TheWayThatWorksFirst) {
  const Known& row = GetParam();
  Facts at;
  at.cause = row.cause;
  at.package.software = row.software;
  at.package.version = row.version;
  at.package.variant = row.variant;
  at.package.manager = row.manager;
  at.gpu.cc = row.device;
  at.driver.cuda = row.driver;
  if (row.cause == Cause::nvrtc_arch_unsupported) at.call.compiler.emplace().name = "NVRTC";
  const Advice advice = advise_on(at);
  ASSERT_FALSE(advice.fixes.empty()) << row.what;
  EXPECT_NE(lines_of(advice.fixes.front()).find(row.first), std::string::npos)
      << row.what << ": " << lines_of(advice.fixes.front());
}
INSTANTIATE_TEST_SUITE_P(Known, Advises, ::testing::ValuesIn(kKnown));

bool warns_of(const Advice& advice, std::string_view action) {
  return std::any_of(advice.dead_ends.begin(), advice.dead_ends.end(),
                     [&](const DeadEnd& row) { return row.action.find(action) != std::string::npos; });
}

TEST(AdviceKnown, WhatNotToTry) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.package.software = "torch";
  at.package.version = "2.9.1";
  at.package.variant = "cu128";
  at.gpu.cc = ComputeCapability{6, 1};
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_62"), {}}};
  const Advice advice = advise_on(at);
  EXPECT_TRUE(warns_of(advice, "TORCH_CUDA_ARCH_LIST"));
  EXPECT_TRUE(warns_of(advice, "updating the driver"));
  EXPECT_TRUE(warns_of(advice, "the build for cu130")) << "it serves other people's GPUs";
  EXPECT_FALSE(warns_of(advice, "the build for cu126"));
  EXPECT_TRUE(warns_of(advice, "installing a CUDA toolkit"));
  EXPECT_TRUE(warns_of(advice, "CUDA_LAUNCH_BLOCKING=1"));
  EXPECT_TRUE(warns_of(advice, "ComputeCache"));
  EXPECT_TRUE(warns_of(advice, "relying on sm_62, which is of the same major version"));
  EXPECT_TRUE(std::none_of(advice.fixes.begin(), advice.fixes.end(), [](const Fix& fix) {
    return fix.kind == FixKind::rebuild;
  })) << "no hours of building where a build exists";
  at.cause = Cause::compiled_out;
  EXPECT_TRUE(warns_of(advise_on(at), "exact architecture"));
}

TEST(AdviceKnown, ThatTheDriverIsFineAndThatNobodyCanRebuildIt) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.file.path = "/usr/lib/libcudnn_ops.so.9";
  at.gpu.cc = ComputeCapability{6, 1};
  at.driver.cuda = {13, 0};
  const Advice advice = advise_on(at);
  EXPECT_EQ(advice.remarks,
            (std::vector<std::string>{"Your driver (for CUDA 13.0) is fine.",
                                      "You cannot rebuild this library: NVIDIA ships it prebuilt."}));
  ASSERT_FALSE(advice.fixes.empty());
  EXPECT_NE(lines_of(advice.fixes.front()).find("nvidia-cudnn-cu12<9.11"), std::string::npos);
}

// nvidia-cudnn-cu12 and -cu13 share a folder: one installed over the other breaks what worked.
TEST(AdviceKnown, NoLibraryOfAnotherCudaBesideTheOneThatIsThere) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.file.path = "/v/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9";
  at.file.origin = Origin::installed;
  at.package.name = "nvidia-cudnn-cu13";
  at.package.version = "9.26.0.51";
  at.package.manager = "pip";
  at.gpu.cc = ComputeCapability{7, 0};
  const auto names_cu12 = [](const Advice& advice) {
    return std::ranges::any_of(advice.fixes, [](const Fix& fix) { return contains(lines_of(fix), "-cu12"); });
  };
  EXPECT_EQ(advise_on(at).fixes.front().id, "use-older-cuda-build");
  EXPECT_FALSE(names_cu12(advise_on(at)));
  at.process.torch = true;
  at.process.python_env.installed = {{"torch", "2.15.0+cu130"}};
  EXPECT_EQ(advise_on(at).fixes.front().arguments.front().second, "torch");
  EXPECT_FALSE(names_cu12(advise_on(at)));
  at.package.name = "nvidia-cudnn-cu12";
  at.process.python_env.installed.clear();
  at.process.torch = false;
  EXPECT_TRUE(names_cu12(advise_on(at)));
}

TEST(AdviceKnown, ToDeleteAnExtensionThatPyTorchCompiled) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.file.path = "/home/u/.cache/torch_extensions/py311_cu128/my ext/my_ext.so";
  at.file.origin = Origin::python_extension;
  at.gpu.cc = ComputeCapability{8, 6};
  ASSERT_FALSE(advise_on(at).fixes.empty());
  EXPECT_TRUE(advise_on(at).fixes.front().commands.empty()) << "not known to be in a cache of one's own";
  at.file.removable = "/home/u/.cache/torch_extensions/py311_cu128/my ext";
  const Advice advice = advise_on(at);
  EXPECT_EQ(advice.fixes.front().commands,
            std::vector<std::string>{"rm -r '/home/u/.cache/torch_extensions/py311_cu128/my ext'"});
}

// What one's own machine needs, and no more: a build of PyTorch's extensions for six GPUs takes six times as
// long.
TEST(AdviceKnown, ToBuildAPackageForTheGpusOfTheMachine) {
  Facts at;
  at.cause = Cause::no_image_for_arch;
  at.file.path = "/v/site-packages/foo/_C.so";
  at.file.origin = Origin::installed;
  at.file.links_torch = true;
  at.package.name = "foo";
  at.gpu.cc = ComputeCapability{8, 6};
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_90"), {}}};
  EXPECT_NE(lines_of(advise_on(at).fixes.front()).find("TORCH_CUDA_ARCH_LIST=\"8.6+PTX\""),
            std::string::npos);
  at.gpu.others = {{9, 0}};
  EXPECT_NE(lines_of(advise_on(at).fixes.front()).find("TORCH_CUDA_ARCH_LIST=\"8.6;9.0+PTX\""),
            std::string::npos);
}

}  // namespace
}  // namespace kshim::test
