// SPDX-License-Identifier: Apache-2.0
// What a reader of many logs knows of their form: stages, surroundings, languages, sizes, and where a line
// decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/render/render.h"
#include "tests/explain/explained.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Finding first_of(const std::string& log) {
  const Explanation explanation = explained(log);
  EXPECT_FALSE(explanation.findings.empty()) << log;
  return explanation.findings.empty() ? Finding{} : explanation.findings.front();
}

std::string first_command(const Finding& finding) {
  return finding.fixes.empty() || finding.fixes.front().commands.empty()
             ? std::string()
             : finding.fixes.front().commands.front();
}

std::string all_commands(const Finding& finding) {
  std::string out;
  for (const Fix& fix : finding.fixes)
    for (const std::string& command : fix.commands) out += command + "\n";
  return out;
}

std::string page(const std::string& log) { return rendered(explained(log), Format::text, {.width = 100}); }

std::size_t evidence(const Finding& finding, EvidenceId id) {
  return static_cast<std::size_t>(std::ranges::count(finding.evidence, id, &Evidence::id));
}

TEST(Structures, AStartThatFailsHasOneLadderWhateverItsWords) {
  for (const char* line :
       {"whisper: cuInit failed with error 999", "scan: gpu driver init failure: 999",
        "load: failed to initialize CUDA: unknown error", "probe of NVML init: unknown error",
        "could not init CUDA: CUDA_ERROR_UNKNOWN (999)"}) {
    const Finding finding = first_of(std::string(line) + "\n");
    EXPECT_EQ(finding.code, 999) << line;
    EXPECT_THAT(first_command(finding), HasSubstr("nvidia_uvm")) << line;
  }
  EXPECT_THAT(first_command(first_of("$ docker run --gpus all app\ncuInit failed with error 999\n")),
              HasSubstr("docker restart"));
}

TEST(Structures, TheCpuThatServesInsteadIsSaid) {
  const std::string start = "ggml_cuda_init: failed to initialize CUDA: unknown error\n";
  EXPECT_EQ(evidence(first_of(start + "server: no GPU detected\n"), EvidenceId::on_cpu), 1U);
  EXPECT_EQ(evidence(first_of("CUDA error: out of memory\nstopped\n"), EvidenceId::on_cpu), 0U);
  EXPECT_THAT(page("level=WARN msg=\"cuInit failed with error 999\"\nusing CPU instead\n"),
              HasSubstr("on the CPU (line 2)"));
}

TEST(Structures, WhatListsItsArchitecturesWasBuiltWithCuda) {
  const std::string says = "warning: not compiled with GPU offload support\n";
  EXPECT_THAT(explained(says).not_cuda, HasSubstr("without CUDA"));
  const Explanation refuted = explained("ggml_cuda_init: failed to initialize CUDA: unknown error\n" + says +
                                        "CUDA : ARCHS = 750,860\n");
  EXPECT_EQ(refuted.not_cuda, "");
  ASSERT_EQ(refuted.findings.size(), 1U);
  EXPECT_EQ(refuted.findings.front().code, 999);
}

TEST(Structures, AContainersStoryNeedsAContainer) {
  const std::string blocked = "Failed to initialize NVML: GPU access blocked by the operating system\n";
  EXPECT_THAT(all_commands(first_of("Linux 5.15.167.4-microsoft-standard-WSL2\n" + blocked)),
              Not(HasSubstr("docker")));
  EXPECT_THAT(first_command(first_of(blocked)), HasSubstr("wsl --update"));
  EXPECT_THAT(first_command(first_of("$ docker exec job nvidia-smi\n" + blocked)),
              HasSubstr("docker restart"));
  EXPECT_THAT(all_commands(first_of("Failed to initialize NVML: Unknown Error\n")), Not(HasSubstr("docker")));
}

TEST(Structures, LinesOfComposeAreOfAContainer) {
  const std::string line = "no CUDA-capable device is detected\n";
  EXPECT_THAT(
      first_command(first_of("api-1  | Traceback (most recent call last):\napi-1  | CUDA error: " + line)),
      HasSubstr("docker compose"));
  EXPECT_THAT(first_command(first_of("model | size\n7B | 4 GiB\nCUDA error: " + line)),
              HasSubstr("nvidia-smi -L"));
}

TEST(Structures, AVirtualGpuIsAskedForItsLicense) {
  const std::string busy = "CUDA error: CUDA-capable device(s) is/are busy or unavailable\n";
  EXPECT_THAT(first_command(first_of("Device 0: NVIDIA A40-24C\n" + busy)), HasSubstr("licen"));
  EXPECT_THAT(first_command(first_of("Device 0: NVIDIA A40\n" + busy)), Not(HasSubstr("licen")));
}

TEST(Structures, APartThatHasAReplacementIsNoFailure) {
  const Finding finding = first_of(
      "NCCL INFO NET/Plugin: dlerror=libnccl-net-x.so: cannot open shared object file: No such file or "
      "directory\n"
      "NCCL INFO NET/Plugin: Using internal net plugin.\n"
      "enqueue.cc:700 NCCL WARN Cuda failure 2 'out of memory'\n");
  EXPECT_EQ(finding.cause, Cause::out_of_memory);
}

TEST(Structures, VersionsOutweighAnotherFrameworksWarning) {
  const Finding finding = first_of(
      "2026-01-05 10:00:00.1: W tensorflow/core/gpu_device.cc:2256] Cannot dlopen some GPU libraries.\n"
      "Unable to initialize backend 'cuda': Found cuBLAS version 120103, but JAX was built against version "
      "120400, which is newer.\n");
  EXPECT_EQ(finding.cause, Cause::mixed_cuda_libraries);
  EXPECT_THAT(all_commands(finding), Not(HasSubstr("tensorflow")));
}

TEST(Structures, WithoutNvidiaSmiThereIsNoDriver) {
  const std::string line = "CUDA driver version is insufficient for CUDA runtime version\n";
  EXPECT_EQ(first_of(line).cause, Cause::driver_too_old);
  EXPECT_EQ(first_of(line + "sh: 1: nvidia-smi: not found\n").cause, Cause::no_device);
  EXPECT_EQ(first_of("root@3f29ab7c01de:/app# ./sim\n" + line).cause, Cause::no_device);
  EXPECT_EQ(first_of("Driver Version: 450.80.02  CUDA Version: 11.0\ncudart 12.2\n" + line).cause,
            Cause::driver_too_old);
}

TEST(Structures, PipServesPythonAlone) {
  const std::string missing =
      "Failed to load library /x/libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open "
      "shared object file: No such file or directory\n";
  for (const char* stack :
       {"\tat ai.onnxruntime.OrtSession.<init>(OrtSession.java:74)\n",
        "thread 'main' panicked at src/lib.rs:12:5:\n",
        "    at Object.<anonymous> (/srv/node_modules/onnxruntime-node/dist/backend.js:17:5)\n",
        "System.TypeInitializationException: The type initializer threw\n"}) {
    const Finding finding = first_of(stack + missing);
    EXPECT_EQ(finding.cause, Cause::library_not_found) << stack;
    EXPECT_THAT(all_commands(finding), Not(HasSubstr("pip"))) << stack;
    EXPECT_FALSE(first_command(finding).empty()) << stack;
  }
  EXPECT_THAT(first_command(first_of("  File \"/v/lib/python3.11/site-packages/onnxruntime/x.py\", line 3\n" +
                                     missing)),
              HasSubstr("onnxruntime-gpu"));
}

TEST(Structures, ASystemsTensorRtIsTheSystems) {
  const Finding finding = first_of(
      "[E] Error[9]: API Usage Error (Target GPU SM 121 is not supported by this TensorRT release.)\n"
      "&&&& FAILED TensorRT.trtexec # /usr/src/tensorrt/bin/trtexec --onnx=a.onnx\n");
  EXPECT_THAT(first_command(finding), HasSubstr("apt-get"));
}

TEST(Structures, ADllHasItsMajorVersionAtTheEnd) {
  const Finding finding =
      first_of("Could not locate cudnn_graph64_9.dll. Please make sure it is in your library path!\n");
  EXPECT_THAT(first_command(finding), HasSubstr("nvidia-cudnn-cu12==9"));
}

TEST(Structures, TheLoaderHasOtherErrorsThanNotFound) {
  for (const char* line :
       {"ImportError: libcublas.so.12: failed to map segment from shared object: Operation not permitted",
        "OSError: /opt/x/libcudnn.so.9: file too short",
        "ImportError: libgomp.so.1: cannot allocate memory in static TLS block"}) {
    const Explanation explanation = explained(std::string(line) + "\n");
    EXPECT_TRUE(explanation.findings.empty()) << line;
    EXPECT_FALSE(explanation.not_cuda.empty()) << line;
  }
}

TEST(Structures, WrappedMessagesAreRead) {
  EXPECT_FALSE(explained("level=ERROR msg=\"load failed\" error=\"runner has terminated: signal: killed\"\n")
                   .not_cuda.empty());
  EXPECT_FALSE(explained("{\"level\":\"error\",\"err\":\"worker: Killed\"}\n").not_cuda.empty());
  EXPECT_EQ(first_of("time=1 level=ERROR error=\"cudaMalloc failed: out of memory\"\n").code, 2);
}

TEST(Structures, RefusalsAreReadByTheirReasons) {
  const Explanation explanation = explained(
      "NotImplementedError: No operator found for `attention` with inputs:\n"
      "`small_k` is not supported because:\n    device=cpu (supported: {'cuda'})\n");
  EXPECT_TRUE(explanation.findings.empty());
  EXPECT_THAT(explanation.not_cuda, HasSubstr("CPU"));
}

TEST(Structures, MemoryIsCounted) {
  const auto oom = [](const char* rest) {
    return first_of("CUDA out of memory. Tried to allocate 2.00 GiB. " + std::string(rest) + "\n");
  };
  const Finding own =
      oom("GPU 0 has a total capacity of 23.65 GiB of "
          "which 1.10 GiB is free. Including non-PyTorch memory, "
          "this process "
          "has 22.40 GiB memory in use. Of the allocated memory 21.90 GiB is allocated by PyTorch, and "
          "120.00 MiB is "
          "reserved by PyTorch but unallocated.");
  EXPECT_THAT(own.fixes.front().why, HasSubstr("22.4"));
  EXPECT_THAT(first_command(own), Not(HasSubstr("nvidia-smi")));
  const Finding other =
      oom("GPU 0 has a total capacity of 23.65 GiB of "
          "which 1.10 GiB is free. Process 77 has 14.00 GiB "
          "memory in use. "
          "Including non-PyTorch memory, this process has 8.40 GiB memory in use. Of the allocated memory "
          "7.90 GiB is "
          "allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.");
  EXPECT_THAT(first_command(other), HasSubstr("nvidia-smi"));
  const Finding reserved =
      oom("GPU 0 has a total capacity of 23.65 GiB of "
          "which 1.10 GiB is free. Including non-PyTorch memory, "
          "this process "
          "has 22.40 GiB memory in use. Of the allocated memory 12.90 GiB is allocated by PyTorch, and 9.00 "
          "GiB is "
          "reserved by PyTorch but unallocated.");
  EXPECT_THAT(first_command(reserved), HasSubstr("expandable_segments"));
  const Finding old =
      oom("(GPU 0; 11.77 GiB total capacity; 3.00 GiB already allocated; 300.00 MiB free; 11.00 GiB reserved "
          "in total by PyTorch)");
  EXPECT_THAT(first_command(old), HasSubstr("expandable_segments"));
  const Finding free =
      oom("GPU 0 has a total capacity of 23.65 GiB of "
          "which 20.10 GiB is free.");
  EXPECT_THAT(free.headline, HasSubstr("20.1"));
}

TEST(Structures, CommandsHaveTheGpuThatWasRead) {
  const Finding finding = first_of("GPU 0: NVIDIA A10\na PTX JIT compilation failed (218)\n");
  EXPECT_THAT(all_commands(finding), HasSubstr("-arch=sm_86"));
}

TEST(Structures, TheReleaseThatChangesLeastIsProposed) {
  const std::string warning =
      "NVIDIA GeForce RTX 5070 with CUDA capability sm_120 is not compatible with the current PyTorch "
      "installation.\n"
      "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\n";
  EXPECT_THAT(first_command(first_of(warning + "torch is 2.4.1\ncuda is 12.1\n")), HasSubstr("cu128"));
  EXPECT_THAT(first_command(first_of(warning + "cuda is 12.1\n")), HasSubstr("cu12"));
}

TEST(Structures, CompatOverAnOldDriverIsNotOnlyRemoved) {
  const Finding finding = first_of(
      "forward compatibility was attempted on non supported HW\n"
      "NVIDIA-SMI 470.161.03  Driver Version: 470.161.03  CUDA Version: 12.2\n");
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_EQ(finding.fixes.front().kind, FixKind::upgrade_driver);
  EXPECT_THAT(finding.fixes.front().why, HasSubstr("11.4"));
}

TEST(Structures, TheQuoteShowsWhatDecides) {
  const std::string path =
      "/opt/conda/envs/a-long-name/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/";
  EXPECT_THAT(
      page("ImportError: " + path +
           "libcusparse.so.12: undefined symbol: __nvJitLinkCreate_12_9, version libnvJitLink.so.12\n"),
      HasSubstr("__nvJitLinkCreate_12_9"));
  EXPECT_THAT(
      page(
          "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some "
          "cuda "
          "functions before calling NumCudaDevices() that might have already set an error? Error 802: system "
          "not yet initialized (Triggered internally at x.cpp:108.)\n"),
      HasSubstr("Error 802"));
  const std::string filler(600, 'x');
  EXPECT_THAT(page("request " + filler + " failed: CUDA error: out of memory " + filler + "\n"),
              HasSubstr("out of memory"));
}

TEST(Structures, AFailureOutsideOfCudaHasTheSameForm) {
  const std::string text = page("AssertionError: Torch not compiled with CUDA enabled\n");
  EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr("not a CUDA failure"));
  EXPECT_THAT(text, HasSubstr("Do this [you]"));
  EXPECT_THAT(text, HasSubstr("--index-url"));
  EXPECT_LE(std::ranges::count(text, '\n'), 15);
  const std::string portable =
      page("C:\\app\\python_embeded\\python.exe -s main.py\nTorch not compiled with CUDA enabled\n");
  EXPECT_THAT(portable, HasSubstr("python_embeded"));
  EXPECT_THAT(page("sageattention 2.2\nImportError: sageattention/_fused.so: undefined symbol: "
                   "_ZN3c104warnERKNS_7WarningE\n"),
              HasSubstr("--no-deps sageattention"));
}

TEST(Structures, AnotherStacksVersionsAreNotCudas) {
  const Explanation explanation =
      explained("HIP error: invalid device function\nHSA System Attributes\nRuntime Version:         1.18\n");
  for (const std::string& fact : explanation.facts) EXPECT_THAT(fact, Not(HasSubstr("CUDA")));
}

TEST(Structures, ASeriesNamesAGeneration) {
  const Explanation explanation = explained(
      "RTX50 series cards\nRuntimeError: CUDA error: no kernel image is available for execution on the "
      "device\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  ASSERT_FALSE(explanation.findings.front().devices.empty());
  EXPECT_EQ(explanation.findings.front().devices.front().cc, (image::ComputeCapability{12, 0}));
}

}  // namespace
}  // namespace kshim::test
