// SPDX-License-Identifier: Apache-2.0
// What a reader of many logs knows of their form: stages, surroundings, languages, sizes, and where a line
// decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/diagnose/facts.h"
#include "analyzer/render/render.h"
#include "tests/explain/explained.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

std::string outside_of(const Explanation& explanation) {
  return explanation.other ? explanation.other->what : std::string();
}

TEST(Structures, WhatListsItsArchitecturesWasBuiltWithCuda) {
  const std::string says = "warning: not compiled with GPU offload support\n";
  EXPECT_THAT(outside_of(explained(says)), HasSubstr("without CUDA"));
  const Explanation refuted = explained("ggml_cuda_init: failed to initialize CUDA: unknown error\n" + says +
                                        "CUDA : ARCHS = 750,860\n");
  EXPECT_EQ(outside_of(refuted), "");
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
    EXPECT_FALSE(outside_of(explanation).empty()) << line;
  }
}

TEST(Structures, WrappedMessagesAreRead) {
  EXPECT_TRUE(
      explained("level=ERROR msg=\"load failed\" error=\"runner has terminated: signal: killed\"\n").other);
  EXPECT_FALSE(outside_of(explained("{\"level\":\"error\",\"err\":\"worker: Killed\"}\n")).empty());
  EXPECT_EQ(first_of("time=1 level=ERROR error=\"cudaMalloc failed: out of memory\"\n").code, 2);
}

TEST(Structures, RefusalsAreReadByTheirReasons) {
  const Explanation explanation = explained(
      "NotImplementedError: No operator found for `attention` with inputs:\n"
      "`small_k` is not supported because:\n    device=cpu (supported: {'cuda'})\n");
  EXPECT_TRUE(explanation.findings.empty());
  EXPECT_THAT(outside_of(explanation), HasSubstr("CPU"));
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
  // In a container PyTorch lists its own process by another number.
  const Finding by_number =
      oom("GPU 0 has a total capacity of 23.65 GiB of "
          "which 205.00 MiB is free. Process 412 has 23.40 GiB "
          "memory in use. Of the allocated memory 22.80 GiB is allocated by PyTorch, and 110.00 MiB is "
          "reserved by PyTorch but unallocated.");
  EXPECT_THAT(by_number.fixes.front().title, HasSubstr("this process need less"));
  // A hair more than was asked for is no room.
  const Finding full = oom(
      "GPU 0 has a total capacity of 5.80 GiB of "
      "which 2.01 GiB is free. Including non-PyTorch memory, "
      "this process has 3.70 GiB memory in use. Of the allocated memory 3.50 GiB is allocated by PyTorch, "
      "and 20.00 MiB is reserved by PyTorch but unallocated.");
  EXPECT_THAT(full.headline, Not(HasSubstr("although")));
  const Finding free =
      oom("GPU 0 has a total capacity of 23.65 GiB of "
          "which 20.10 GiB is free.");
  EXPECT_THAT(free.headline, HasSubstr("20.1"));
}

TEST(Structures, TheDriverThatAMessageNamesIsTheOneThatIsThere) {
  const std::string warning =
      "UserWarning: The NVIDIA driver on your system is too old (found version 11040).";
  EXPECT_EQ(first_of("Driver Version: 470.82.01   CUDA Version: 11.4\nnvcc 11.4\n" + warning + "\n").cause,
            Cause::driver_too_old);
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

TEST(Structures, ASourcePathNamesItsProject) {
  const auto project = [](const std::string& path) {
    const Finding finding = first_of(
        "CUDA error: no kernel image is available for execution on the device (at " + path + ":313)\n");
    return finding.about == nullptr ? std::string("nothing") : finding.about->package.project;
  };
  EXPECT_EQ(project(R"(E:\work\fastdraw\src\kernels\gemv.cu)"), "fastdraw");
  EXPECT_EQ(project("/ho"
                    "me/ann/foldlib-2.1/src/gpu_utils/optimiser.cu"),
            "foldlib");
  EXPECT_EQ(project("/builds/team/solver-main/include/solver/launch.cuh"), "solver");
  EXPECT_EQ(project("boosting/cuda/cuda_lib/cuda_base.h"), "boosting");
  EXPECT_EQ(project("conda-bld/libmath_1600000000000/work/cpp/prims/near.cuh"), "libmath");
  EXPECT_EQ(project("/go/src/github.com/maker/server/llm/engine/engine.cu"), "server");
  // A user's name, a place, and what another project has inside say nothing.
  for (const char* path :
       {"/ho"
        "me/ann/src/kernels/a.cu",
        "/tmp/build/src/a.cu", "external/tensors/src/launch.inl", "/w/third_party/tensors/src/a.cu",
        "../aten/src/native/cuda/Loops.cu", "kernel.cu"})
    EXPECT_EQ(project(path), "") << path;
  EXPECT_EQ(first_of("dock_gpu_64wi: ./cuda/kernels.cu:147: void set(Data*): Assertion `0' failed: invalid "
                     "device symbol\n")
                .about->package.project,
            "dock_gpu_64wi");
  EXPECT_THAT(page(R"(CUDA error: no kernel image is available (at C:\x\fastdraw\src\a.cu:1))"
                   "\n"),
              HasSubstr("fastdraw has no code"));
}

TEST(Structures, PipIsForWhatPipHas) {
  for (const char* program : {"Blender 2.83", "RELION 3.1", "darknet", "GROMACS 2023"})
    for (const char* line :
         {"a PTX JIT compilation failed (218)", "no kernel image is available for execution on the device"})
      EXPECT_THAT(all_commands(first_of(std::string(program) + " on a GTX 1080\nCUDA error: " + line + "\n")),
                  Not(HasSubstr("pip install")))
          << program << line;
  EXPECT_THAT(
      all_commands(first_of("cupy-cuda11x 12.0 on an RTX 5090\nCUDA error: no kernel image is available\n")),
      HasSubstr("cupy"));
}

TEST(Structures, WhatPassesACheckIsNoSuspect) {
  const std::string failed =
      "CUDA error code=500(cudaErrorSymbolNotFound) \"cudaOccupancyMaxPotentialBlockSize\"\nRTX 3060\n";
  EXPECT_EQ(first_of(failed + "torch.cuda.is_available() returns True\n").about->package.software, "");
  EXPECT_EQ(first_of(failed + "torch.cuda.is_available() -> True\n").about->package.software, "");
  EXPECT_EQ(first_of(failed + "torch 2.7.0\n").about->package.software, "torch");
}

TEST(Structures, TheLibraryOfTheStatusRefuses) {
  const Finding finding = first_of(
      "cmake -DTRT_PATH=/opt/TensorRT-5.1.5.0 ..\nTesla K80\nCUDA runtime error: "
      "CUBLAS_STATUS_ARCH_MISMATCH\n");
  EXPECT_EQ(finding.cause, Cause::library_refuses);
  EXPECT_NE(finding.about->package.software, "TensorRT");
  for (const Fix& fix : finding.fixes) EXPECT_THAT(fix.title, Not(HasSubstr("TensorRT")));
}

TEST(Structures, ACodeThatSaysWhichLibcudaIsSaidFirst) {
  EXPECT_THAT(first_of("CUDA driver is a stub library\n").headline, HasSubstr("stub"));
  EXPECT_THAT(first_of("CUDA error 804\n").headline, HasSubstr("compat"));
  EXPECT_NE(first_of("CUDA error 803\n").headline, first_of("CUDA error 804\n").headline);
}

TEST(Structures, AnArchitectureThatIsListedIsNotBuiltAgain) {
  const auto first = [](const char* arch, const char* list) {
    return first_of(fmt::format("ggml-cuda.cu:1412: ERROR: CUDA kernel mul_mat_q has no device code "
                                "compatible with CUDA arch {}. "
                                "ggml-cuda.cu was compiled for: {}\n",
                                arch, list))
        .fixes.front()
        .kind;
  };
  EXPECT_EQ(first("600", "500,600,700"), FixKind::reinstall);
  EXPECT_EQ(first("520", "610,700"), FixKind::rebuild);
  EXPECT_EQ(first("520", "520"), FixKind::rebuild) << "nvcc's default";
}

TEST(Structures, PtxThatDeclaresTooLittleAccusesItsWriter) {
  const Finding finding =
      first_of("ptxas fatal: Feature 'cvt with .e4m3x2' requires PTX ISA .version 8.1 or later\n");
  EXPECT_EQ(finding.about->call.message, "ptx_old_version");
  EXPECT_THAT(finding.fixes.front().title, HasSubstr("8.1"));
}

TEST(Structures, ALaterLineThatSaysMoreDecides) {
  const Finding finding = first_of(
      "CUDA Setup failed despite GPU being available.\nCUDA SETUP: Required library version not found: "
      "libbitsandbytes_cuda121.so.\n");
  EXPECT_EQ(finding.about->call.message, "bnb_binary");
}

TEST(Structures, ANumberBeyondTheVisibleGpus) {
  for (const char* line :
       {"Invalid CUDA device index \"1\" from device string cuda:0,1, there are 1 visible CUDA devices.",
        "CUDA: invalid GPU device id 3"})
    EXPECT_EQ(first_of(std::string(line) + "\n").cause, Cause::invalid_device) << line;
}

TEST(Structures, ASourceLineOfATracebackIsNoMessage) {
  const std::string end = "ModuleNotFoundError: No module named 'setuptools'\n";
  for (const char* source :
       {"from .autotuner import (Autotuner, Config, OutOfResources, autotune)",
        "raise RuntimeError(\"no kernel image is available for execution on the device\")"}) {
    const std::string text = fmt::format(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    {}\n", source);
    EXPECT_TRUE(explained(text + end).findings.empty()) << source;
    const std::string prefixed = fmt::format(
        "(pid=7) Traceback (most recent call last):\n(pid=7)   File \"a.py\", line 1, in <module>\n(pid=7)   "
        "  {}\n",
        source);
    EXPECT_TRUE(explained(prefixed + "(pid=7) " + end).findings.empty()) << source;
    EXPECT_TRUE(explained(fmt::format("----> 1 {}\n", source) + end).findings.empty()) << source;
  }
  EXPECT_EQ(first_of("  File \"a.py\", line 1, in f\n    launch(x)\nRuntimeError: CUDA error: no kernel "
                     "image is available for execution on the device\n")
                .code,
            209);
}

TEST(Structures, AStatusNamesItsLibrary) {
  const auto library = [](const std::string& line) {
    return first_of(line + " on GTX 1080\n").about->package.software;
  };
  EXPECT_EQ(library("CUSTATEVEC_STATUS_ARCH_MISMATCH"), "custatevec");
  EXPECT_EQ(library("custatevecCreate failed: architecture mismatch"), "custatevec");
  EXPECT_EQ(library("CUSOLVER_STATUS_ARCH_MISMATCH"), "cuSOLVER");
  EXPECT_EQ(first_of("cudnnStatusArchMismatch on GTX 1080\n").cause, Cause::cudnn_mismatch);
  EXPECT_THAT(all_commands(first_of("CUSTATEVEC_STATUS_ARCH_MISMATCH on GTX 1080\n")),
              Not(HasSubstr("no-binary")))
      << "closed";
  EXPECT_THAT(page("CUSTATEVEC_STATUS_ARCH_MISMATCH on GTX 1080\n"), HasSubstr("cuStateVec refuses"));
}

TEST(Structures, ADeviceOfAnUnsupportedVersion) {
  const Finding finding = first_of("ValueError: CUDA device is an unsupported version: (6, 1)\n");
  EXPECT_EQ(finding.cause, Cause::library_refuses);
  ASSERT_EQ(finding.devices.size(), 1U);
  EXPECT_EQ(finding.devices.front().cc, (image::ComputeCapability{6, 1}));
}

TEST(Structures, TensorFlowsRuntimeIsMissingWhereAGpuIsThere) {
  const std::string line =
      "tsl/cuda/cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.\n";
  EXPECT_EQ(first_of(line).cause, Cause::no_device);
  EXPECT_EQ(first_of("TensorFlow 2.13.1\nRTX 4090\n" + line).cause, Cause::library_not_found);
}

TEST(Structures, NoOtherProcessHoldsWhatNoGpuHas) {
  const Finding finding = first_of(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 47.98 GiB. GPU 0 has a total capacity "
      "of 22.00 GiB of "
      "which 12.29 GiB is free.\n");
  EXPECT_THAT(finding.about->process.shows, testing::Contains("memory-beyond"));
  const Finding spilled = first_of(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total "
      "capacty of 6.00 GiB of "
      "which 0 bytes is free. Of the allocated memory 9.50 GiB is allocated by PyTorch.\n");
  EXPECT_THAT(spilled.about->process.shows, testing::Contains("memory-beyond"));
}

}  // namespace
}  // namespace kshim::test
