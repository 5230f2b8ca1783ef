// SPDX-License-Identifier: Apache-2.0
// The first fix is what an expert would do: by the packager at hand, in the words of the user's own build,
// and nothing that is done already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/render/render.h"
#include "tests/explain/explained.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Fix first_fix(const std::string& log) {
  const Finding finding = first_of(log);
  EXPECT_FALSE(finding.fixes.empty()) << log;
  return finding.fixes.empty() ? Fix{} : finding.fixes.front();
}

std::string command_for(const std::string& log) { return first_command(first_of(log)); }
std::string commands_for(const std::string& log) { return all_commands(first_of(log)); }

const std::string kNoImage = "CUDA error: no kernel image is available for execution on the device\n";

TEST(FirstFix, AnotherLanguageGetsNoCommandOfPip) {
  const std::string logs[] = {
      "Exception in thread \"main\" java.lang.RuntimeException: " + kNoImage +
          "\tat org.nd4j.linalg.jcublas.ops.CudaExecutioner.exec(CudaExecutioner.java:21)\n"
          "<artifactId>nd4j-cuda-10.2-platform</artifactId>\nRTX 3080\n",
      "ai.djl.engine.EngineException: " + kNoImage +
          "\tat ai.djl.pytorch.jni.PyTorchLibrary.moduleRunMethod(Native Method)\nRTX 5080\n",
      "thread 'main' panicked at src/train.rs:41: Torch(\"" + kNoImage +
          "LIBTORCH=/opt/libtorch-1.13.0+cu117\nRTX 5090\n",
      "> library(torch)\nError: " + kNoImage + "R version 4.3.2 (2023-10-31)\nRTX 5070\n"};
  for (const std::string& log : logs) {
    EXPECT_THAT(commands_for(log), Not(ContainsRegex("pip install|setup.py|git clone"))) << log;
    EXPECT_EQ(first_fix(log).kind, FixKind::reinstall) << log;
  }
  EXPECT_THAT(command_for("  File \"/v/lib/python3.11/site-packages/torch/nn/f.py\", line 2, in g\n"
                          "RuntimeError: " +
                          kNoImage + "torch 2.5.1+cu124, RTX 5080\n"),
              HasSubstr("pip install"));
}

TEST(FirstFix, JuliasCudaIsSetByJulia) {
  const std::string log =
      "julia> CUDA.rand(9)\nERROR: " + kNoImage + " @ CUDA ~/.julia/packages/CUDA/T/lib/module.jl:40\n";
  EXPECT_THAT(command_for(log + "Tesla V100\n"), HasSubstr("set_runtime_version!(v\"12.9\")"));
  EXPECT_THAT(command_for(log + "RTX 5080\n"), Not(HasSubstr("set_runtime_version")));
}

TEST(FirstFix, AMissingLibraryOfAnotherLanguageIsTheSystems) {
  EXPECT_THAT(command_for("Error: libcudart.so.12: cannot open shared object file: No such file\n"
                          "    at Object.<anonymous> (/app/node_modules/onnxruntime-node/b.js:9:5)\n"),
              HasSubstr("cuda-libraries-12"));
  EXPECT_THAT(command_for("goroutine 1 [running]:\nlibcudnn.so.8: cannot open shared object file\n"),
              HasSubstr("libcudnn8"));
  EXPECT_THAT(
      first_fix("Caused by: java.lang.UnsatisfiedLinkError: "
                "/h/.javacpp/cache/cuda-11.8-8.6-1.5.8-linux-x86_64.jar/libjnicudnn.so: libcudnn.so.8: "
                "cannot open shared object file\n")
          .title,
      HasSubstr("cuda-platform-redist:11.8-8.6-1.5.8"));
}

TEST(FirstFix, WhatCondaInstalledCondaChanges) {
  const std::string list = "# packages in environment at /opt/miniconda3/envs/s:\n";
  const std::string refused = "nvrtc: error: invalid value for --gpu-architecture (-arch)\nRTX 4090\n";
  EXPECT_THAT(command_for(list + "cupy        10.6.0      py39hc3c280e_0    conda-forge\n" + refused),
              HasSubstr("conda install"));
  EXPECT_THAT(command_for("dependencies:\n  - cupy=11.6.0\n" + refused), HasSubstr("conda install"));
  EXPECT_THAT(commands_for(list + "cupy        10.6.0      py39hc3c280e_0    conda-forge\n" + refused),
              Not(HasSubstr("pip install")));
  EXPECT_THAT(command_for(list + "pytorch     1.12.1      py3.9_cuda11.3_cudnn8.3.2_0    pytorch\n" +
                          "RuntimeError: " + kNoImage + "NVIDIA H100\n"),
              HasSubstr("conda install"));
  EXPECT_THAT(command_for(list + "torch       2.1.0+cu118     pypi_0    pypi\nRuntimeError: " + kNoImage +
                          "RTX 5090\n"),
              HasSubstr("pip install"))
      << "pip's";
}

TEST(FirstFix, TheUsersOwnBuildCommandIsCorrected) {
  EXPECT_EQ(
      command_for("$ cmake -B build -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=86 && cmake --build build -j\n"
                  "$ ./build/bin/sim\n" +
                  kNoImage + "Tesla T4\n"),
      "cmake -B build -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=\"75\" && cmake --build build -j");
  EXPECT_EQ(command_for("$ nvcc -O3 -arch=sm_86 -o heat heat.cu && ./heat\n" + kNoImage + "NVIDIA TITAN V\n"),
            "nvcc -O3 -arch=sm_70 -o heat heat.cu");
  EXPECT_EQ(command_for("$ make -j8 CUDA_ARCH_LIST=\"80 90\"\n$ ./solver\n" + kNoImage + "RTX A5000\n"),
            "make -B -j8 CUDA_ARCH_LIST=\"86\"");
  EXPECT_THAT(command_for("$ TORCH_CUDA_ARCH_LIST=\"8.0\" pip install --no-build-isolation ./fast\n"
                          "  File \"/v/lib/python3.11/site-packages/fast/ops.py\", line 20, in f\n"
                          "    return fast_cuda.fwd(q)\nRuntimeError: " +
                          kNoImage + "RTX 4070, torch 2.5.1+cu124\n"),
              ContainsRegex("^TORCH_CUDA_ARCH_LIST=\"8.9\" pip install .*\\./fast$"));
}

TEST(FirstFix, ABuildCommandThatIsNotTheUsersIsNotPrinted) {
  // What a build prints of itself, what a shell would obey, and what is right already.
  for (const char* command :
       {"nvcc -arch=sm_86 -c heat.cu -o heat.o", "$ cmake -DCMAKE_CUDA_ARCHITECTURES=86 -DX=`id`",
        "$ cmake -DCMAKE_CUDA_ARCHITECTURES=86 $(id)", "$ nvcc -arch=sm_75 -o heat heat.cu"})
    EXPECT_NE(first_fix(std::string(command) + "\n$ ./heat\n" + kNoImage + "Tesla T4\n").title,
              "Run your build command again, for sm_75")
        << command;
}

TEST(FirstFix, WhatIsInstalledIsNotInstalledAgain) {
  const Finding finding = first_of(
      "Requirement already satisfied: torch in /usr/lib/python3/dist-packages (2.7.1+cu128)\n"
      "  File \"/v/lib/python3.11/site-packages/xyz_cuda/ops.py\", line 2, in f\n"
      "    out = xyz_cuda.forward(x)\nRuntimeError: " +
      kNoImage + "RTX 5090 with CUDA capability sm_120\n");
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_NE(finding.fixes.front().id, "install-build");
}

TEST(FirstFix, TheReleaseOfThePastIsNotTheOneThatIsThere) {
  const auto version = [](const std::string& line) {
    return first_of("GPU: Tesla V100\n" + line + "\nRuntimeError: " + kNoImage).about->package.version;
  };
  EXPECT_EQ(version("It worked with PyTorch 2.4.1, then I upgraded to PyTorch 2.9.0 (cu130)."), "2.9.0");
  EXPECT_EQ(version("UserWarning: Model was trained with torch 1.10.0+cu102, yours is 2.8.0+cu128. Bad "
                    "things may happen"),
            "2.8.0");
  EXPECT_EQ(version("torch 2.7.1+cu118 was fine, since 2.8.0+cu128 it fails"), "2.8.0");
  EXPECT_EQ(version("torch 2.8.0+cu128 fails here; it works with torch 2.7.1+cu118"), "2.8.0");
  const auto driver = [](const std::string& line) {
    return first_of(
               line +
               "\nRuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n")
        .about->driver.module;
  };
  EXPECT_EQ(driver("After updating from driver 535.104 to 575.57 our jobs die"), "575.57");
  EXPECT_EQ(driver("driver 535.104 of 2023"), "535.104");
}

TEST(FirstFix, AStartThatFailsInWslIsTheDriversOfWindows) {
  const std::string wsl = "Linux pc 5.15.167.4-microsoft-standard-WSL2\n";
  for (const char* line :
       {"cuda: cuInit returned 3: initialization error\n",
        "CUDA failure 500: named symbol not found ; GPU=-1 ; expr=cudaGetDeviceCount(&num);\n"}) {
    const Fix fix = first_fix(wsl + line);
    EXPECT_THAT(fix.title, HasSubstr("Windows")) << line;
  }
  EXPECT_THAT(first_fix("cuda: cuInit returned 3: initialization error\n").title, Not(HasSubstr("Windows")));
}

TEST(FirstFix, ACompilersHeadlineNamesItsOwner) {
  const auto headline = [](const std::string& log) {
    return rendered(explained(log), Format::text, {.width = 100});
  };
  const std::string refused = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
  EXPECT_THAT(headline("cupy-cuda12x 12.2.0, RTX 5070\nCompileException: " + refused),
              HasSubstr("CuPy 12.2.0: NVRTC does not compile for RTX 5070"));
  EXPECT_THAT(headline("triton==3.3.1\ntriton/compiler: ptxas fatal   : Value 'sm_121a' is not defined for "
                       "option 'gpu-name'\n"),
              HasSubstr("triton 3.3.1: ptxas does not compile for sm_121a"));
  EXPECT_THAT(headline("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n"),
              HasSubstr("nvcc does not compile for sm_120"));
}

TEST(FirstFix, ABuildThatCompilesAtRunTimeHasACompilerForTheGpu) {
  const std::string log =
      "torch 1.10.0+cu102, RTX 4090\n  File \"/v/site-packages/torch/a.py\", line 3, in f\n"
      "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
  EXPECT_THAT(command_for(log), ContainsRegex("whl/cu(118|12[0-9])")) << "11.1 does not know 8.9";
}

TEST(FirstFix, ACallThatReturnedANumberFailed) {
  EXPECT_EQ(first_of("ERROR : cuModuleLoadDataEx -> Returned: 218\n").code, 218);
  EXPECT_EQ(first_of("cuMemAlloc_v2 returned 2\n").code, 2);
  EXPECT_THAT(explained("cuMemAlloc_v2 returned 0\n").findings, IsEmpty());
}

TEST(FirstFix, WhatIsThereGetsASearchPath) {
  const std::string missing =
      "app: libcublas.so.12: cannot open shared object file: No such file or directory\n";
  EXPECT_THAT(command_for("$ ls /usr/local/cuda-12.4/lib64\nlibcublas.so.12  libcudart.so.12\n" + missing),
              HasSubstr("LD_LIBRARY_PATH=/usr/local/cuda-12.4/lib64"));
  EXPECT_THAT(command_for("$ find / -name 'libcublas*'\n/opt/cuda/lib64/libcublas.so.12.4.5.8\n" + missing),
              HasSubstr("LD_LIBRARY_PATH=/opt/cuda/lib64"));
  const std::string toolkit = "OSError: CUDA_HOME environment variable is not set.\n";
  EXPECT_THAT(command_for("$ whereis nvcc\nnvcc: /usr/local/cuda-12.4/bin/nvcc\n" + toolkit),
              HasSubstr("CUDA_HOME=/usr/local/cuda-12.4"));
  // Another release, a path that is searched, and what the log says to be missing.
  EXPECT_THAT(command_for("/opt/cuda/lib64/libcublas.so.11\n" + missing), Not(HasSubstr("/opt/cuda")));
  EXPECT_THAT(
      command_for("\tlibcublas.so.12 (libc6) => /usr/lib/x86_64-linux-gnu/libcublas.so.12\n" + missing),
      Not(HasSubstr("x86_64-linux-gnu")));
  EXPECT_THAT(command_for("ls: cannot access '/opt/cuda/lib64/libcublas.so.12': No such file\n" + missing),
              Not(HasSubstr("/opt/cuda")));
  EXPECT_THAT(command_for("/usr/local/cuda-12.4/bin/nvcc: No such file or directory\n" + toolkit),
              HasSubstr("apt-get install cuda-toolkit-12-4"));
}

TEST(FirstFix, TheFileThatEndedTheProgramIsTheHeadline) {
  const auto headline = [](const std::string& log) { return first_of(log).headline; };
  const std::string missing = "ImportError: libcudnn.so.9: cannot open shared object file: No such file\n";
  EXPECT_THAT(
      headline("UserWarning: CUDA initialization: Found no NVIDIA driver on your system.\n" + missing),
      HasSubstr("libcudnn.so.9"));
  EXPECT_THAT(
      headline("Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open "
               "shared object file\nCould not load dynamic library 'libcudnn.so.8'; dlerror: "
               "libcudnn.so.8: cannot open shared object file\n"),
      HasSubstr("libcudnn.so.8"));
  EXPECT_THAT(
      headline("Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: "
               "cannot open shared object file\n"),
      HasSubstr("libcublasLt.so.12"));
  // A failure that was thrown is no complaint.
  EXPECT_EQ(first_of("RuntimeError: Found no NVIDIA driver on your system.\n" + missing).cause,
            Cause::no_device);
}

TEST(FirstFix, AContainerIsGivenItsGpuBeforeTheHostGetsADriver) {
  const std::string failed =
      "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version\n";
  EXPECT_THAT(command_for("$ docker run --rm app\n" + failed), HasSubstr("--gpus all"));
  EXPECT_THAT(command_for("$ podman run --rm app\n" + failed), ContainsRegex("^podman .*nvidia.com/gpu=all"));
  EXPECT_THAT(command_for("$ docker compose up\nweb-1  | start\nweb-1  | " + failed),
              HasSubstr("compose up"));
  EXPECT_THAT(command_for("$ kubectl logs web\n" + failed), HasSubstr("nvidia.com/gpu"));
  EXPECT_THAT(command_for("$ kubectl logs web\nlibcuda.so.1: cannot open shared object file\n"),
              HasSubstr("nvidia.com/gpu"));
  const std::string host = "Driver Version: 550.54 CUDA Version: 12.4\n";
  EXPECT_EQ(first_of(host + "$ docker run --rm app\ncudart 12.8\n" + failed).cause, Cause::no_device);
  // It was given, and nvidia-smi works within.
  EXPECT_EQ(first_of("$ docker run --gpus all app\n" + failed).cause, Cause::driver_too_old);
  EXPECT_EQ(first_of("root@3f1a2b4c5d6e:/app# nvidia-smi\nDriver Version: 470.82 CUDA Version: 11.4\ncudart "
                     "12.4\n" +
                     failed)
                .cause,
            Cause::driver_too_old);
}

TEST(FirstFix, NoCommandIsVoidForWhatTheLogShows) {
  const std::string lacks =
      "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open "
      "shared object file\nonnxruntime-gpu 1.20.1\n";
  EXPECT_THAT(command_for("Driver Version: 535.104 CUDA Version: 12.2\n" + lacks),
              HasSubstr("[cuda,cudnn]<1.27"));
  EXPECT_THAT(command_for("Driver Version: 580.65 CUDA Version: 13.0\n" + lacks),
              ContainsRegex("\\[cuda,cudnn\\]'?$"));
  EXPECT_THAT(commands_for("Driver Version: 470.82 CUDA Version: 11.4\n" + lacks), Not(HasSubstr("cudnn]")));
  EXPECT_THAT(commands_for("Python 3.10.2\n" + lacks), Not(HasSubstr("uv venv")));
  const std::string old = "tensorflow 2.4\nImportError: libcudart.so.11.0: cannot open shared object file\n";
  EXPECT_THAT(command_for("Python 3.10.1\n" + old), HasSubstr("and-cuda"));
  // What pip would not find for this Python goes into an environment of a newer one.
  for (const std::string& asked :
       {"Python 2.7.18\n" + old, "Python 3.8.10\n" + old, "Python 3.9.2\n" + lacks}) {
    EXPECT_THAT(command_for(asked), HasSubstr("uv venv --python 3.12")) << asked;
    EXPECT_THAT(commands_for(asked), HasSubstr("--python new-env")) << asked;
  }
  // What Windows, and Linux in it, does not have.
  const std::string start = "CUDA unknown error - this may be due to an incorrectly set up environment\n";
  EXPECT_THAT(first_fix("PS C:\\x> python a.py\n" + start).title, HasSubstr("Windows"));
  EXPECT_THAT(first_fix("$ python3 a.py\n" + start).commands.front(), HasSubstr("modprobe"));
  for (const char* line : {"modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15\n",
                           "Failed to initialize NVML: Driver/library version mismatch\n"}) {
    EXPECT_THAT(command_for(std::string("WSL2\n") + line), HasSubstr("/usr/lib/wsl/lib")) << line;
    EXPECT_THAT(command_for(line), Not(HasSubstr("/usr/lib/wsl/lib"))) << line;
  }
}

TEST(FirstFix, WhatNoIndexHasIsBuiltInACheckout) {
  const auto command = [](const std::string& package) {
    const Explanation found = explained("ImportError: /v/lib/python3.10/site-packages/" + package +
                                        "/_C.so: undefined symbol: _ZN3c104cuda\n");
    return found.other ? join(found.other->remedy.commands, "\n") : std::string();
  };
  EXPECT_THAT(command("apex"), ContainsRegex(" \\.$"));
  EXPECT_THAT(command("pointnet2_ops"), ContainsRegex(" \\.$"));
  EXPECT_THAT(command("pytorch3d"), HasSubstr("git+https://github.com/facebookresearch/pytorch3d.git"));
  EXPECT_THAT(command("torchvision"), HasSubstr("torchvision"));
}

TEST(FirstFix, AnOldCheckOfFp8WantsANewerPyTorch) {
  const std::string refused =
      "RuntimeError: torch._scaled_mm is only supported on devices with compute capability >= 9.0\n";
  EXPECT_EQ(first_fix("RTX 4090, torch 2.1.2+cu121\n" + refused).kind, FixKind::reinstall);
  EXPECT_EQ(first_fix("RTX 3090, torch 2.1.2+cu121\n" + refused).kind, FixKind::code);
}

TEST(FirstFix, AResetOfTheDisplayIsWindowsTimeLimit) {
  const std::string late = "CUDA error 702: the launch timed out and was terminated\n";
  EXPECT_THAT(command_for("C:\\b> render.exe\n" + late), HasSubstr("TdrDelay"));
  EXPECT_THAT(command_for("$ ./render\n" + late), Not(HasSubstr("TdrDelay")));
  const std::string fault = "RuntimeError: CUDA error: unspecified launch failure\n";
  EXPECT_THAT(command_for("Windows 10\nthe screen goes black for a moment\n" + fault), HasSubstr("TdrDelay"));
  EXPECT_THAT(command_for("Windows 10\n" + fault), Not(HasSubstr("TdrDelay")));
  // The GPU's illegal instruction, and the CPU's.
  EXPECT_EQ(first_fix("CUDA error 715: an illegal instruction was encountered\nNVIDIA B200\n").kind,
            FixKind::reinstall);
  EXPECT_TRUE(explained("Illegal instruction (core dumped)\n").findings.empty());
}

TEST(FirstFix, AnEnvironmentIsNoOwner) {
  const auto project = [](const std::string& line) {
    return first_of(line + "\n" + kNoImage).about->package.project;
  };
  for (const char* line : {"user@box:~/anaconda3/envs/py39$ ./run", "user@box:~/trialD/.venv$ python",
                           "user@box:/data/trialD/venv$ python", "D:\\trialD\\venv\\Scripts\\python.exe x",
                           "/srv/trialD/venv/bin/python x", "a@b:~/.pyenv/versions/3.10.4/x$ ./run"})
    EXPECT_THAT(project(line), Not(ContainsRegex("trialD|py39|3\\.10"))) << line;
  EXPECT_EQ(project("cd ~/ComfyUI"), "ComfyUI");
  EXPECT_EQ(project("user@box:~/gridfold$ ./run"), "gridfold");
}

TEST(FirstFix, NixBuildsForItsOwnList) {
  const std::string log =
      "  File \"/nix/store/a-env/lib/python3.11/site-packages/torch/f.py\", line 2, in g\nRuntimeError: " +
      kNoImage + "torch 2.5.1, RTX 5090\n";
  EXPECT_THAT(command_for(log), HasSubstr("cudaCapabilities = [ \"12.0\" ]"));
  EXPECT_THAT(commands_for(log), Not(HasSubstr("pip install")));
}

TEST(FirstFix, ARangeIsNoReleaseThatIsThere) {
  const auto version = [](const std::string& line) {
    return first_of("GPU: Tesla V100\n" + line + "\nRuntimeError: " + kNoImage).about->package.version;
  };
  EXPECT_EQ(version("You need torch>=1.10"), "");
  EXPECT_EQ(version("torch>=1.10 is asked for\ntorch 2.9.0+cu130"), "2.9.0");
  EXPECT_EQ(version("torch==2.9.0"), "2.9.0");
}

TEST(FirstFix, TheHeadlineHasTheNumbersThatContradict) {
  const auto page = [](const std::string& log) { return rendered(explained(log), Format::text, {}); };
  EXPECT_THAT(page("fatal   : Unsupported .version 8.5; current version is '8.2'\n"),
              HasSubstr("PTX 8.5 against a driver that reads 8.2"));
  const std::string refused =
      "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 "
      "GPU "
      "has compute capability 7.5.\n";
  EXPECT_THAT(page(refused), HasSubstr("asks for 8.0"));
  EXPECT_THAT(command_for("vllm 0.6.3\n" + refused), HasSubstr("--dtype half"));
}

TEST(FirstFix, TheDllThatWindowsNamesIsNamed) {
  const auto what = [](const std::string& log) {
    const Explanation found = explained(log);
    return found.other ? found.other->what : std::string();
  };
  EXPECT_THAT(what("OSError: [WinError 126] The specified module could not be found. Error loading "
                   "\"C:\\p\\torch\\lib\\caffe2_nvrtc.dll\" or one of its dependencies.\n"),
              HasSubstr(" caffe2_nvrtc.dll:"));
  EXPECT_THAT(what("ImportError: DLL load failed while importing _C: x\n"), HasSubstr(" _C,"));
  EXPECT_THAT(what("[WinError 126] The specified module could not be found\n"), HasSubstr("a DLL,"));
}

// Each was tried in an environment that fails like that.
TEST(FirstFix, WhatDidNotWorkWhenItWasTriedIsNotPrinted) {
  const auto command = [](const std::string& log) {
    const Explanation found = explained(log);
    return found.other ? join(found.other->remedy.commands, "\n") : command_for(log);
  };
  EXPECT_THAT(command("x: undefined reference to `cudaMalloc'\n"), HasSubstr(" -lcudart"));
  EXPECT_THAT(command("x: undefined reference to `cudaMalloc'\n"), Not(HasSubstr("export")));
  const std::string no_torch = "ModuleNotFoundError: No module named 'torch'\n";
  EXPECT_THAT(command("  Getting requirements to build wheel did not run successfully.\n" + no_torch),
              HasSubstr("--no-build-isolation"));
  EXPECT_THAT(command(no_torch), Not(HasSubstr("--no-build-isolation")));
  EXPECT_THAT(command("RuntimeError: operator torchvision::nms does not exist\n"), Not(HasSubstr("cuXYZ")));
  EXPECT_THAT(command("AttributeError: module 'faiss' has no attribute 'StandardGpuResources'\n"),
              HasSubstr("faiss-gpu"));
  EXPECT_THAT(command("ValueError: Cannot use GPU, CuPy is not installed\n"), HasSubstr("cupy-cuda12x[ctk]"));
}

TEST(FirstFix, EveryMissingLibraryIsInstalledAtOnce) {
  const std::string cannot = ": cannot open shared object file: No such file or directory\n";
  const std::string log = "  File \"/v/lib/python3.10/site-packages/own/a.py\", line 2, in f\nOSError: ";
  EXPECT_THAT(command_for(log + "libcublas.so.12" + cannot + "libcufft.so.11" + cannot),
              HasSubstr("'nvidia-cublas-cu12' 'nvidia-cufft-cu12'"));
  EXPECT_THAT(command_for(log + "libcublas.so.12" + cannot), Not(HasSubstr("cufft")));
}

TEST(FirstFix, AJetsonHasTheLibrariesOfItsJetPack) {
  const std::string missing = "OSError: libcublas.so.12: cannot open shared object file: No such file\n";
  const std::string python = "  File \"/v/lib/python3.10/site-packages/torch/a.py\", line 2, in f\n";
  EXPECT_THAT(command_for("Jetson Orin NX\n" + python + missing), HasSubstr("nvidia-jetpack"));
  EXPECT_THAT(command_for("Jetson Nano\ndocker run --runtime nvidia own/image\n" + python + missing),
              HasSubstr("nv_tegra_release"));
  EXPECT_THAT(command_for("RTX 4090\n" + python + missing), HasSubstr("nvidia-cublas-cu12"));
}

TEST(FirstFix, ALibraryOfNvidiasBesideTheToolkitIsNoSystemLibrary) {
  const std::string missing = "ImportError: libcudss.so.0: cannot open shared object file: No such file\n";
  EXPECT_THAT(command_for(missing), HasSubstr("'nvidia-cudss-cu12<1'"));
  EXPECT_THAT(command_for("Jetson AGX Orin\n" + missing), HasSubstr("apt-get install cudss"));
}

TEST(FirstFix, ThePyTorchThatIsThereSaysTheCudaBeforeAToolkit) {
  const std::string missing = "ImportError: libnvrtc.so.12: cannot open shared object file: No such file\n";
  const std::string toolkit = "python -m server\nCuda compilation tools, release 11.8, V11.8.89\n";
  EXPECT_THAT(command_for(toolkit + "torch 2.8.0+cu128\n" + missing), HasSubstr("nvidia-cuda-nvrtc-cu12"));
}

TEST(FirstFix, ABuildForTheCudaThatIsThereGoesBeforeAQuestion) {
  const std::string log =
      "ImportError: libnvrtc.so.12: cannot open shared object file: No such file\n"
      "  File \"/v/lib/python3.12/site-packages/sgl_kernel/__init__.py\", line 2, in f\n"
      "torch 2.11.0+cu130\n";
  EXPECT_THAT(first_fix(log).title, HasSubstr("for CUDA 13, which is there"));
}

TEST(FirstFix, WhatJaxInstalledIsNotInstalledAgain) {
  const std::string missing =
      "jax 0.6.1\n  File \"/v/lib/python3.12/site-packages/jax/a.py\", line 2, in f\n"
      "RuntimeError: Unable to load cuSPARSE. Is it installed?\n";
  EXPECT_THAT(command_for("nvidia-cusparse-cu12==12.5.9.5\n" + missing), HasSubstr("env -u LD_LIBRARY_PATH"));
  EXPECT_THAT(command_for(" + nvidia-cusparse-cu12==12.5.9.5\n" + missing),
              HasSubstr("env -u LD_LIBRARY_PATH"));
  EXPECT_THAT(command_for(missing), HasSubstr("jax[cuda"));
}

TEST(FirstFix, TensorFlowIsInstalledWithItsLibrariesWhereThePythonHasSuchARelease) {
  const std::string missing =
      "/lib/python3.11/site-packages/tensorflow/a.py\ndso_loader.cc:64] Could not load dynamic library "
      "'libcusolver.so.11'; dlerror: libcusolver.so.11: cannot open shared object file\n";
  EXPECT_THAT(command_for(missing), HasSubstr("tensorflow[and-cuda]"));
}

TEST(FirstFix, TritonsPtxasIsItsOwn) {
  const std::string refused = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n";
  const std::string page = rendered(
      explained("PTXAS error: Internal Triton PTX codegen error\n" + refused + "torch 2.9.0+cu130, GB10\n"),
      Format::text, {});
  EXPECT_THAT(page, HasSubstr("Triton's ptxas does not compile for sm_121a"));
  EXPECT_THAT(page, Not(HasSubstr("probably")));
  EXPECT_THAT(rendered(explained(refused), Format::text, {}), Not(HasSubstr("Triton's")));
}

TEST(FirstFix, TheReleaseOfNvrtcsBuiltinsIsInTheirName) {
  const auto command = [](const std::string& file) {
    return command_for(
        "  File \"/v/lib/python3.12/site-packages/cupy/a.py\", line 2, in f\n"
        "nvrtc: error: failed to open " +
        file + ".\n");
  };
  EXPECT_THAT(command("libnvrtc-builtins.so.12.8"), HasSubstr("cuda-toolkit[nvrtc]==12.8.*"));
  EXPECT_THAT(command("nvrtc-builtins64_131.dll"), HasSubstr("cuda-toolkit[nvrtc]==13.1.*"));
}

TEST(FirstFix, TheProgramsOwnPythonInstalls) {
  const auto command = [](const std::string& folder) {
    return rendered(explained("  File \"" + folder +
                              "\\Lib\\site-packages\\torch\\a.py\", line 2, in f\n"
                              "AssertionError: Torch not compiled with CUDA enabled\nRTX 4060\n"),
                    Format::text, {});
  };
  EXPECT_THAT(command("D:\\App\\python_standalone"), HasSubstr(".\\python_standalone\\python.exe -s -m pip"));
  EXPECT_THAT(command("D:\\sd-webui-forge\\venv"), HasSubstr(".\\venv\\Scripts\\python.exe -m pip"));
  EXPECT_THAT(command("D:\\work\\venv"), Not(HasSubstr("Scripts")));
  EXPECT_THAT(command("C:\\Python311"), Not(HasSubstr("python.exe")));
}

TEST(FirstFix, AnAttentionThatTheGpuLacksIsSwitched) {
  const std::string log =
      "Tesla V100\n  File \"/v/vllm/a.py\", line 2, in f\n    assert "
      "is_fa_version_supported(self.fa_version)\nAssertionError\n";
  EXPECT_THAT(command_for(log), HasSubstr("VLLM_USE_V1=0"));
  EXPECT_THAT(first_fix("RTX 3060\nerror: fp8e4nv data type is not supported on CUDA arch < 89\n").title,
              HasSubstr("float8_e5m2"));
}

TEST(FirstFix, AnInstalledLibraryIsPutWhereTheLoaderLooks) {
  const std::string missing =
      "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9}\n";
  const std::string own =
      "./tool: error while loading shared libraries: libcublas.so.12: cannot open shared object file\n";
  const std::string logs[] = {
      "Successfully installed ctranslate2-4.5.0 nvidia-cudnn-cu12-9.6.0.74 nvidia-cublas-cu12-12.6.4.1\n" +
          missing,
      "ctranslate2              4.6.0\nnvidia-cudnn-cu12        9.10.2.21\n" + missing,
      "onnxruntime-gpu==1.20.1\nRequirement already satisfied: nvidia-cudnn-cu12 in "
      "./v/lib/python3.10/site-packages "
      "(9.5.0.50)\n[E:onnxruntime] Failed to load library libonnxruntime_providers_cuda.so with error: "
      "libcudnn.so.9: "
      "cannot open shared object file: No such file or directory\n",
      "Name: nvidia-cublas-cu12\nVersion: 12.4.5.8\n$ ./tool\n" + own};
  for (const std::string& log : logs) {
    EXPECT_THAT(command_for(log), HasSubstr("export LD_LIBRARY_PATH=")) << log;
    EXPECT_THAT(command_for(log), Not(HasSubstr("pip install"))) << log;
  }
  // What pip tells of is not there yet.
  EXPECT_THAT(
      commands_for("ERROR: No matching distribution found for nvidia-cudnn-cu12==9.9.9\nctranslate2 4.5.0\n" +
                   missing),
      HasSubstr("pip install"));
}

TEST(FirstFix, WhatAsksForAnotherCudaIsExchangedAndNotTheLibrary) {
  const auto log = [](const char* torch, const char* frame, const char* library) {
    return fmt::format(
        "torch {}\n  File \"/e/lib/python3.10/site-packages/{}\", line 3, in <module>\nImportError: {}: "
        "cannot open "
        "shared object file: No such file or directory\n",
        torch, frame, library);
  };
  EXPECT_THAT(command_for(log("2.4.1+cu121", "torch_scatter/__init__.py", "libcudart.so.11.0")),
              HasSubstr("data.pyg.org/whl/torch-2.4.0+cu121.html"));
  EXPECT_THAT(command_for(log("2.3.0+cu121", "dgl/_ffi/base.py", "libcusparse.so.11")),
              HasSubstr("data.dgl.ai/wheels/torch-2.3/cu121/repo.html"));
  EXPECT_THAT(command_for(log("2.6.0+cu124", "detectron2/layers/deform_conv.py", "libcudart.so.11.0")),
              HasSubstr("detectron2.git"));
  EXPECT_THAT(command_for(log("2.5.1+cu124", "flash_attn/a.py", "libcudart.so.11.0")),
              HasSubstr("--no-build-isolation"));
  EXPECT_THAT(first_fix(log("2.0.1+cu118", "spconv/core_cc.py", "libcusolver.so.10")).title,
              HasSubstr("spconv for CUDA 11"));
  // libcufft.so.11 is of CUDA 12, and libcusolver.so.11 of two.
  EXPECT_THAT(first_fix(log("2.7.0+cu118", "own_ext/a.py", "libcufft.so.11")).title,
              HasSubstr("for CUDA 11"));
  EXPECT_THAT(first_fix(log("2.4.1+cu121", "own_ext/a.py", "libcusolver.so.11")).title,
              Not(HasSubstr("for CUDA 12, which is there")));
  for (const char* library : {"libcudart.so.11.0", "libcublas.so.11"})
    EXPECT_THAT(commands_for(log("2.4.1+cu121", "torch_scatter/__init__.py", library)),
                Not(HasSubstr("nvidia-cu")));
}

TEST(FirstFix, AnExtensionOfAnotherPyTorchIsTakenFromItsIndexOrCompiled) {
  const auto command = [](const std::string& before, const char* file) {
    const std::string log =
        before + "ImportError: /e/lib/python3.12/site-packages/" + file +
        ".cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZNK3c1017SymbolicShapeMeta4initEv\n";
    return rendered(explained(log), Format::text, {});
  };
  EXPECT_THAT(command("PyTorch 2.7.0a0+7c8ec84dab.nv25.03\n", "flash_attn_2_cuda"),
              HasSubstr("FORCE_BUILD=TRUE"));
  EXPECT_THAT(command("nvcr.io/nvidia/pytorch:24.07-py3\n", "causal_conv1d_cuda"),
              HasSubstr("FORCE_BUILD=TRUE"));
  EXPECT_THAT(command("torch 2.4.1+cu121\n", "flash_attn_2_cuda"), Not(HasSubstr("FORCE_BUILD")));
  EXPECT_THAT(command("torch 2.6.0+cu124\n", "torch_sparse/_convert_cuda"),
              HasSubstr("data.pyg.org/whl/torch-2.6.0+cu124.html"));
}

TEST(FirstFix, TheAbiStandsInTheSymbol) {
  const auto page = [](const char* symbol) {
    return rendered(
        explained(fmt::format("ImportError: /e/flash_attn_2_cuda.so: undefined symbol: {}\n", symbol)),
        Format::text, {});
  };
  EXPECT_THAT(page("_ZN3c105ErrorC2ENS_14SourceLocationESs"), HasSubstr("cxx11abiFALSE"));
  EXPECT_THAT(page("_ZN5torch3jit17parseSchemaOrNameERKSs"), HasSubstr("cxx11abiFALSE"));
  EXPECT_THAT(page("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcEE"),
              HasSubstr("cxx11abiTRUE"));
  EXPECT_THAT(page("_ZN3c104cuda9SetDeviceEi"), Not(HasSubstr("cxx11abi")));
}

TEST(FirstFix, VllmsNumbersAreInItsOptions) {
  EXPECT_THAT(
      command_for(
          "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that "
          "can be stored in KV cache (7344). Try increasing `gpu_memory_utilization`\n"),
      HasSubstr("--max-model-len 7344"));
  EXPECT_THAT(
      command_for(
          "ValueError: To serve at least one request with the models's max seq len (40960), (5.62 GiB KV "
          "cache is needed, which is larger than the available KV cache memory (3.05 GiB). Based on the "
          "available memory, the estimated maximum model length is 22192.\n"),
      HasSubstr("--max-model-len 22192"));
  const auto free = [](const char* have) {
    return command_for(
        fmt::format("ValueError: Free memory on device cuda:0 ({}/22.05 GiB) on startup is less than desired "
                    "GPU memory utilization (0.9, 19.84 GiB).\n",
                    have));
  };
  EXPECT_THAT(free("19.77"), HasSubstr("--gpu-memory-utilization 0.89"));
  EXPECT_THAT(free("3.1"), HasSubstr("nvidia-smi"));
}

TEST(FirstFix, AnIndexBeyondThePositionsIsALongInput) {
  const std::string index =
      "Indexing.cu:1141: indexSelectLargeIndex: block: [4,0,0], thread: [5,0,0] Assertion `srcIndex < "
      "srcSelectDimSize` failed.\n";
  EXPECT_THAT(
      first_fix("Token indices sequence length is longer than the specified maximum sequence length for this "
                "model (1412 > 512).\n" +
                index)
          .title,
      HasSubstr("positions"));
  EXPECT_THAT(first_fix(index).title, HasSubstr("min() and max()"));
}

TEST(FirstFix, WhatIsImportedAsksForTheLibraryAndNotPyTorch) {
  const auto title = [](const char* frame) {
    return first_fix(
               fmt::format("torch 2.4.1+cu121\n  File \"/e/lib/python3.8/site-packages/{}\", line 10, in "
                           "<module>\nImportError: libcudart.so.11.0: cannot open shared object file\n",
                           frame))
        .title;
  };
  EXPECT_THAT(title("pytorch_quantization/cuda_ext.py"), HasSubstr("pytorch_quantization for CUDA 12"));
  EXPECT_THAT(title("own_ext/__init__.py"), HasSubstr("own_ext for CUDA 12"));
}

TEST(FirstFix, AnOldTensorFlowGetsItsOldCuda) {
  const auto command = [](const char* library) {
    return command_for(
        fmt::format("tensorflow-gpu 1.13.1\n  File \"/e/site-packages/tensorflow/python/a.py\", line 6, in "
                    "f\nImportError: {}: cannot open shared object file\n",
                    library));
  };
  EXPECT_THAT(command("libcublas.so.10.0"), HasSubstr("cudatoolkit=10.0"));
  EXPECT_THAT(command("libcudart.so.9.0"), HasSubstr("cudatoolkit=9.0"));
  EXPECT_THAT(command("libcudart.so.11.0"), Not(HasSubstr("cudatoolkit=")));
}

TEST(FirstFix, TorchvisionFollowsThePyTorchThatIsThere) {
  const std::string nms = "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.\n";
  EXPECT_THAT(
      command_for("torch 2.6.0+cu124\ntorchvision 0.21.0+cpu\n" + nms),
      HasSubstr("torch==2.6.0 torchvision torchaudio --index-url https://download.pytorch.org/whl/cu124"));
  EXPECT_THAT(command_for("torch 2.6.0\n" + nms), Not(HasSubstr("torch==2.6.0")));
}

TEST(FirstFix, CuDnnOfAnotherCudaIsExchanged) {
  const std::string load =
      "Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open shared object file\n";
  EXPECT_THAT(command_for("paddle 2.6.1\nCuda compilation tools, release 11.8, V11.8.89\n" + load),
              HasSubstr("nvidia-cudnn-cu11<9"));
  EXPECT_THAT(command_for("nvcc of CUDA 12.4\n" + load), Not(HasSubstr("cudnn-cu11")));
}

TEST(FirstFix, AnExtensionWithoutAnIndexIsNamedByItsModule) {
  const Explanation found = explained(
      "ImportError: /e/dist-packages/own_ext.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
      "_ZN3c104cudaEi\n"
      "PyTorch 2.8.0+cu128\n");
  ASSERT_TRUE(found.other);
  EXPECT_THAT(found.other->remedy.title, HasSubstr("own_ext"));
  EXPECT_THAT(join(found.other->remedy.commands, "\n"), Not(HasSubstr("PACKAGE")));
}

TEST(FirstFix, AVisualStudioThatIsTooNewIsReplacedByTheOneTheToolkitNames) {
  const auto command = [](const char* years) {
    return command_for(fmt::format(
        "CUDA\\v11.2\\include\\crt/host_config.h(160): fatal error C1189: #error:  -- unsupported Microsoft "
        "Visual Studio version! Only the versions between {} (inclusive) are supported!\n"
        "Cuda compilation tools, release 11.2, V11.2.67\n",
        years));
  };
  EXPECT_THAT(command("2017 and 2019"), HasSubstr("-vcvars_ver=14.29"));
  EXPECT_THAT(command("2012 and 2017"), HasSubstr("-vcvars_ver=14.16"));
  EXPECT_THAT(command("2017 and 2022"), HasSubstr("-vcvars_ver=14.39"));
}

TEST(FirstFix, AHeaderOfThrustIsIncludedByTheNameOfWhatIsMissing) {
  const auto command = [](const char* name) {
    return command_for(
        fmt::format("/src/points.cu(41): error: namespace \"thrust\" has no member \"{}\"\n", name));
  };
  EXPECT_THAT(command("device"), HasSubstr("<thrust/execution_policy.h>' /src/points.cu"));
  EXPECT_THAT(command("sort_by_key"), HasSubstr("<thrust/sort.h>"));
  EXPECT_THAT(command("make_counting_iterator"), HasSubstr("<thrust/iterator/counting_iterator.h>"));
  EXPECT_THAT(command("unary_function"), Not(HasSubstr("#include")));
}

TEST(FirstFix, ADriverCallOfNcclsAllocatorIsDoneWithout) {
  const auto command = [](const char* error) {
    return command_for(fmt::format("n1:7:7 [0] include/alloc.h:213 NCCL WARN Cuda failure {}\n", error));
  };
  EXPECT_THAT(command("999 'unknown error'"), HasSubstr("NCCL_CUMEM_ENABLE=0"));
  EXPECT_THAT(command("801 'operation not supported'"), HasSubstr("NCCL_CUMEM_ENABLE=0"));
  EXPECT_THAT(command("2 'out of memory'"), Not(HasSubstr("CUMEM")));
}

TEST(FirstFix, AVariableThatNamesAnOldToolkitIsUnset) {
  const std::string line = "NvvmSupportError: libNVVM cannot be found. Do `conda install cudatoolkit`:\n";
  const std::string gone = ": cannot open shared object file: No such file or directory\n";
  EXPECT_THAT(commands_for(line + "/opt/cuda-10.1/nvvm/lib64/libnvvm.so" + gone),
              HasSubstr("unset CUDA_HOME"));
  EXPECT_THAT(command_for(line + "libnvvm.so" + gone), HasSubstr("numba-cuda["));
}

TEST(FirstFix, WhatWasBuiltWithoutCudaIsBuiltWithIt) {
  const auto command = [](const char* cuda) {
    return command_for(
        fmt::format("RuntimeError: Detected that PyTorch and torch_scatter were compiled with "
                    "different CUDA versions. PyTorch has CUDA version 12.1 and torch_scatter "
                    "has CUDA version {}. Please reinstall\n",
                    cuda));
  };
  EXPECT_THAT(command("0.0"), HasSubstr("FORCE_CUDA=1"));
  EXPECT_THAT(command("11.8"), Not(HasSubstr("FORCE_CUDA")));
}

TEST(FirstFix, AModuleThatLacksAFunctionIsOfAnotherRelease) {
  EXPECT_THAT(command_for("cuda-python 12.9.6 requires cuda-bindings~=12.9.6, but cuda-bindings 13.2.0 is "
                          "present\nImportError: cuda.bindings.cydriver does not export expected C function "
                          "cuDeviceGetUuid_v2\n"),
              HasSubstr("'cuda-bindings~=12.9.6'"));
  EXPECT_THAT(command_for("ImportError: scipy.linalg.cython_lapack does not export expected C function f\n"
                          "cuml 24.02\n"),
              HasSubstr("pip check"));
}

TEST(FirstFix, AnOldJaxlibTakesItsLibrariesFromAToolkit) {
  const auto command = [](const char* jax, const char* library) {
    return command_for(
        fmt::format("jax {}\n  File \"/e/lib/python3.8/site-packages/jax/a.py\", line 1, in "
                    "f\nImportError: {}: cannot open shared object file\n",
                    jax, library));
  };
  EXPECT_THAT(command("0.1.72", "libcudart.so.11.0"), HasSubstr("nvcc --version"));
  EXPECT_THAT(command("0.4.30", "libcudart.so.12"), HasSubstr("jax[cuda12]"));
}

TEST(FirstFix, FaissForCuda11IsNamedWhereTheLogNamesIt) {
  const std::string line =
      "RTX 3090\nFaiss assertion 'err__ == cudaSuccess' failed in f() at gpu/impl/L2Norm.cu:292; details: "
      "CUDA error 209 no kernel image is available for execution on the device\n";
  EXPECT_THAT(commands_for("CUDA 11.4\n" + line), HasSubstr("faiss-gpu-cu11"));
  EXPECT_THAT(commands_for("CUDA 12.4\n" + line), Not(HasSubstr("install 'faiss-gpu-cu11")));
}

TEST(FirstFix, AnIllegalInstructionOnArmIsOpenBlas) {
  const auto command = [](const char* machine) {
    const Explanation found =
        explained(fmt::format("{}\n>>> import cv2\nIllegal instruction (core dumped)\n", machine));
    return found.other ? join(found.other->remedy.commands, "\n") : std::string();
  };
  EXPECT_THAT(command("NVIDIA Jetson Nano, CUDA 10.2"), HasSubstr("OPENBLAS_CORETYPE=ARMV8"));
  EXPECT_THAT(command("x86_64, CUDA 12.1"), Not(HasSubstr("OPENBLAS")));
}

}  // namespace
}  // namespace kshim::test
