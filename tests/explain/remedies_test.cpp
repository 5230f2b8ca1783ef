// SPDX-License-Identifier: Apache-2.0
// The tables of what to do: by message, by code, and for Windows.
#include "analyzer/advise/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/rules.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/explain.h"
#include "kshim/base/cuda_error.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

const std::set<std::string_view>& ids() {
  static const auto kIds = [] {
    std::set<std::string_view> out;
    for (const MessageRow& row : messages()) out.insert(row.id);
    return out;
  }();
  return kIds;
}

Finding finding_of(const char* text, std::optional<image::ComputeCapability> cc = {}) {
  ExplainRequest options;
  options.assume_cc = cc;
  const Explanation explanation = explain_text(text, options);
  EXPECT_EQ(explanation.findings.size(), 1U) << text;
  return explanation.findings.empty() ? Finding{} : explanation.findings.front();
}

bool any_command(const Finding& finding, const char* part) {
  return std::any_of(finding.fixes.begin(), finding.fixes.end(), [&](const Fix& fix) {
    return std::any_of(fix.commands.begin(), fix.commands.end(),
                       [&](const std::string& command) { return command.find(part) != std::string::npos; });
  });
}

// Tried on simulated GPUs: what was there for CUDA 13 has to go, and the releases have builds for CUDA 12.
TEST(Remedies, APackageOfCuda13ThatRefusesAnOlderGpuHasOneOfCuda12) {
  const Finding numba = finding_of(
      "  File \"/v/lib/python3.11/site-packages/numba_cuda/numba/cuda/cudadrv/nvrtc.py\", line 204, in "
      "find_closest_arch\n    raise CCSupportError(msg)\n"
      "numba.cuda.cudadrv.error.CCSupportError: GPU compute capability 6.1 is not supported(requires >=7.5)");
  EXPECT_TRUE(any_command(numba, "uninstall -y cuda-toolkit nvidia-cuda-nvrtc"));
  EXPECT_TRUE(any_command(numba, "numba-cuda[cu12]"));
  const Finding warp = finding_of(
      "  File \"/v/lib/python3.11/site-packages/warp/_src/context.py\", line 6457, in "
      "_validate_cuda_device_arch\n"
      "RuntimeError: CUDA 13.4 requires sm_75 or higher, but sm_50 (device cuda:0) was specified. Use a CUDA "
      "12 build of Warp on this GPU.",
      image::ComputeCapability{5, 2});
  EXPECT_TRUE(any_command(warp, "warp-lang<1.18"));
}

TEST(Remedies, AFixThatAssumesIsNotSure) {
  const Finding bare = finding_of("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'");
  ASSERT_FALSE(bare.fixes.empty());
  EXPECT_THAT(bare.fixes.front().assumed, ::testing::Contains(Assumed::system));
  EXPECT_LE(bare.confidence, kMostIfAssumed);
  const Finding told = finding_of(
      "NVIDIA-SMI 570.86.10   Driver Version: 570.86.10   CUDA Version: 12.8\n"
      "Cuda compilation tools, release 12.4, V12.4.131\n"
      "/usr/local/cuda/bin/ptxas -arch=sm_120 k.ptx\n"
      "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'");
  ASSERT_FALSE(told.fixes.empty());
  EXPECT_THAT(told.fixes.front().assumed, ::testing::IsEmpty());
  EXPECT_GT(told.confidence, kMostIfAssumed);
}

// The user's own nvcc comes before another CUDA where it builds for the GPU's generation.
TEST(Remedies, TheToolkitThatIsThereMayDo) {
  const Finding finding = finding_of(
      "nvcc fatal   : Unsupported gpu architecture 'compute_89'\n"
      "Cuda compilation tools, release 11.4, V11.4.152");
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_EQ(finding.fixes.front().id, "build-for-older");
}

TEST(Remedies, EveryRowIsOfAMessage) {
  for (const MessageFixRow& row : message_fixes()) {
    constexpr std::string_view kFamily = "of_all_";
    const bool family = row.message.starts_with(kFamily);
    const std::string begins = family ? std::string(row.message.substr(kFamily.size())) + '_' : std::string();
    const std::vector<std::string> own = split(std::string(row.message), " ");
    const bool known = family ? std::any_of(ids().begin(), ids().end(),
                                            [&](std::string_view id) { return id.starts_with(begins); })
                              : std::all_of(own.begin(), own.end(),
                                            [](const std::string& id) { return ids().count(id) == 1; });
    EXPECT_TRUE(known) << row.message;
    EXPECT_NE(std::string(row.why), "") << row.title;
    // A command is a whole one: quotes and parentheses are closed.
    const std::string command(row.command);
    EXPECT_EQ(std::count(command.begin(), command.end(), '"') % 2, 0) << command;
    EXPECT_EQ(std::count(command.begin(), command.end(), '('),
              std::count(command.begin(), command.end(), ')'));
  }
  for (const MessageTitleRow& row : message_titles()) EXPECT_EQ(ids().count(row.message), 1U) << row.message;
}

TEST(Remedies, NoGpuInTheContainerIsNotMendedByTheCommandThatFailed) {
  const Finding docker =
      finding_of("docker: could not select device driver \"\" with capabilities: [[gpu]].");
  EXPECT_TRUE(any_command(docker, "nvidia-ctk runtime configure"));
  EXPECT_FALSE(docker.code);  // nobody printed 100
  const Finding smi =
      finding_of("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
  EXPECT_TRUE(any_command(smi, "modprobe nvidia"));
  EXPECT_FALSE(any_command(smi, "nvidia-smi"));
  EXPECT_FALSE(smi.code);
  const Finding old =
      finding_of("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4");
  ASSERT_FALSE(old.fixes.empty());
  EXPECT_EQ(old.fixes.front().actor, Actor::you);
  EXPECT_TRUE(
      std::ranges::any_of(old.fixes, [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; }));
  EXPECT_FALSE(old.code);
}

TEST(Remedies, TheFirstFixIsThatOfTheMessage) {
  constexpr std::pair<const char*, const char*> kFirst[] = {
      {"RuntimeError: FlashInfer requires GPUs with sm75 or higher", "refuses_flashinfer"},
      {"ERROR: CUDA kernel flash_attn_ext_f16 has no device code compatible with CUDA arch 700. "
       "ggml-cuda.cu was compiled for: 610,700",
       "ggml_attention"},
      {"ERROR: CUDA kernel mul_mat_q has no device code compatible with CUDA arch 520. ggml-cuda.cu was "
       "compiled for: 520",
       "ggml_stub"},
      {"W gpu_device.cc:2348] Cannot dlopen some GPU libraries.", "tf_dynamic"},
      {"nvrtc: error: failed to open libnvrtc-builtins.so.12.4.", "nvrtc_no_builtins"},
      {"Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.8.0.", "tf_cudnn"},
  };
  for (const auto& [text, id] : kFirst) {
    const Finding finding = finding_of(text);
    ASSERT_FALSE(finding.fixes.empty()) << text;
    EXPECT_EQ(finding.fixes.front().id, id) << text;
    EXPECT_NE(finding.object.empty() ? 'x' : finding.object.back(), '.') << text;
  }
}

TEST(Remedies, AnEngineIsBuiltAgain) {
  const Finding finding = finding_of(
      "[TRT] 6: The engine plan file is generated on an incompatible device, expecting compute 8.6 got "
      "compute "
      "7.5, please rebuild.");
  EXPECT_EQ(finding.cause, Cause::stale_cache_artifact);
  EXPECT_TRUE(any_command(finding, "trtexec"));
  EXPECT_FALSE(any_command(finding, "pip install"));
  EXPECT_TRUE(finding.remarks.empty());
}

TEST(Remedies, ALibraryThatDroppedTheGpuIsExchanged) {
  const Finding known = finding_of("CUDNN_STATUS_ARCH_MISMATCH", image::ComputeCapability{6, 1});
  EXPECT_TRUE(any_command(known, "nvidia-cudnn-cu12<9.11"));
  EXPECT_FALSE(any_command(known, "LD_LIBRARY_PATH"));
  const Finding unknown = finding_of("CUDNN_STATUS_ARCH_MISMATCH");
  EXPECT_FALSE(any_command(unknown, "LD_LIBRARY_PATH"));
  const Finding flash = finding_of("RuntimeError: FlashAttention only supports Ampere GPUs or newer.");
  ASSERT_FALSE(flash.fixes.empty());
  EXPECT_NE(flash.fixes.front().why.find("scaled_dot_product_attention"), std::string::npos);
}

TEST(Remedies, TheTargetOfTheVeryGpu) {
  const char* text =
      "ERROR : Arch conditional MMA instruction used without targeting appropriate compute capability. "
      "Aborting.";
  const Finding hopper = finding_of(text, image::ComputeCapability{9, 0});
  ASSERT_FALSE(hopper.fixes.empty());
  EXPECT_NE(hopper.fixes.front().title.find("arch=compute_90a,code=sm_90a"), std::string::npos);
  EXPECT_TRUE(hopper.dead_ends.empty());
  EXPECT_EQ(hopper.severity, Severity::error);  // it aborts
  // sm_86a is none.
  const Finding ampere = finding_of(text, image::ComputeCapability{8, 6});
  for (const Fix& fix : ampere.fixes) EXPECT_EQ(fix.title.find("{sm}"), std::string::npos) << fix.title;
}

TEST(Remedies, CodesThatSayByThemselvesWhatIsWrong) {
  for (const CodeMeaningRow& row : code_meanings()) {
    ASSERT_NE(find_cuda_error(row.code), nullptr);
    EXPECT_GE(row.confidence, 0.48);
    EXPECT_EQ(headline_of_code(row.code, row.cause), row.headline);
    // 4 was "launch failure" once: its name says which it is.
    const bool reused = find_old_code(row.code) != nullptr;
    const Finding found =
        finding_of(reused ? find_cuda_error(row.code)->driver_name : std::to_string(row.code).c_str());
    EXPECT_EQ(found.cause, row.cause);
    EXPECT_EQ(found.headline, row.headline);
    ASSERT_FALSE(found.fixes.empty());
    EXPECT_EQ(found.fixes.front().title, row.title);
    EXPECT_FALSE(any_command(found, "KSHIM_LOG=debug"));
  }
}

TEST(Remedies, ALaunchOfTheWrongShapeIsNotOneOfTooManyRegisters) {
  EXPECT_EQ(finding_of("9").fixes.front().why.find("registers"), std::string::npos);
  EXPECT_NE(finding_of("701").fixes.front().why.find("registers"), std::string::npos);
}

// The file name behind `ptxas` says that it is the program; the driver's compiler says "application ptx
// input".
TEST(Situations, AnOldPtxasIsReplacedAndNotTheDriver) {
  for (const char* file : {"/tmp/tempfile-host-1a2b-3", "/tmp/k.ptx", "C:\\Temp\\k.ptx"}) {
    const std::string text = std::string("ptxas ") + file +
                             ", line 5; fatal   : Unsupported .version 8.8; current version is '8.2'";
    const Finding finding = finding_of(text.c_str());
    EXPECT_EQ(finding.cause, Cause::nvrtc_arch_unsupported) << text;
    ASSERT_FALSE(finding.fixes.empty());
    EXPECT_EQ(finding.fixes.front().id, "ptxas_version");
    EXPECT_TRUE(std::none_of(finding.fixes.begin(), finding.fixes.end(),
                             [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; }));
  }
  EXPECT_EQ(
      finding_of(
          "ptxas application ptx input, line 5; fatal   : Unsupported .version 8.8; current version is '8.2'")
          .cause,
      Cause::ptx_newer_than_driver);
}

// vLLM asks for one release of PyTorch: another one breaks it, and brings none of its kernels.
TEST(Situations, PyTorchIsNotReplacedUnderVllm) {
  const Finding finding = finding_of(
      "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device\n"
      "vLLM 0.10.2, NVIDIA GB10, CUDA 13.0, driver 580.95.05\n");
  EXPECT_EQ(finding.cause, Cause::no_image_for_arch);
  EXPECT_FALSE(any_command(finding, "torch=="));
}

// The driver that a published wheel needs is that of the PTX in it, and not the next after the one there.
TEST(Situations, TheDriverIsThatOfTheWheelsPtx) {
  const Finding finding = finding_of(
      "NVIDIA-SMI 550.54.14    Driver Version: 550.54.14    CUDA Version: 12.4\n"
      "GPU 0: NVIDIA L4\n"
      "vllm==0.20.2\n"
      "  File \"/v/lib/python3.12/site-packages/vllm/_custom_ops.py\", line 41, in silu_and_mul\n"
      "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n");
  EXPECT_EQ(finding.cause, Cause::ptx_newer_than_driver);
  const auto update = std::find_if(finding.fixes.begin(), finding.fixes.end(),
                                   [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; });
  ASSERT_NE(update, finding.fixes.end());
  EXPECT_NE(update->title.find("580."), std::string::npos) << update->title;
}

// The PTX of TensorFlow's wheels does not compile for Blackwell: no release of it is named before the
// container.
TEST(Situations, TensorFlowOnBlackwellIsTakenFromTheContainer) {
  const Finding finding = finding_of(
      "2025-03-31 14:23:20: W tensorflow/compiler/mlir/tools/kernel_gen/tf_gpu_runtime_wrappers.cc:40] "
      "'cuModuleLoadData(&module, "
      "data)' failed with 'CUDA_ERROR_INVALID_PTX'\ntensorflow 2.19.0\nNVIDIA GeForce RTX 5070 Ti\n");
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_EQ(finding.fixes.front().id, "tf_kernel_ptx");
  EXPECT_EQ(finding.fixes.front().kind, FixKind::reinstall);
}

// What a program ended with is none of CUDA's numbers, and nobody's driver is too old for an older CUDA.
TEST(Situations, NumbersThatAreNotCudas) {
  EXPECT_TRUE(
      explain_text("process didn't exit successfully: `cudarc-1/build-script-build` (exit status: 101)", {})
          .findings.empty());
  EXPECT_EQ(finding_of("CUDA Toolkit 12.8, Driver 13.0\nWarp CUDA error 36: API call is not supported in the "
                       "installed CUDA driver\n")
                .cause,
            Cause::unknown);
}

std::vector<std::string> fix_ids(const Finding& finding) {
  std::vector<std::string> out;
  for (const Fix& fix : finding.fixes) out.emplace_back(fix.id);
  return out;
}

// Where nothing shows that the user builds the program.
TEST(Remedies, AnotherReleaseOfAFinishedProgramComesBeforeItsRebuild) {
  const std::string failure = "GPU #0: no kernel image is available for execution on the device\n";
  const auto first = [&](const std::string& rest) {
    const Finding finding = finding_of((failure + rest).c_str());
    return fix_ids(finding).empty() ? std::string() : fix_ids(finding).front();
  };
  const std::string gpu = "GPU 0: GeForce 940MX (compute capability 5.0)\n";
  EXPECT_EQ(first(gpu), "take-release-with-code");
  EXPECT_EQ(fix_ids(finding_of((failure + gpu).c_str())).at(1), "rebuild");
  EXPECT_EQ(first(""), "have-code-built");
  for (const char* builds :
       {"$ nvcc -o a a.cu\n", "$ ./stixels ../example/ 128\n", "make: *** [all] Error 2\n",
        "cmake3 -DCUDA_ARCH=60;61;62 .\n", "at src/tracer.cu:135\n"})
    EXPECT_EQ(first(gpu + builds), "rebuild") << builds;
  // Nobody has the source of a miner.
  const Finding miner = finding_of((failure + gpu + "Starting on stratum+tcp://pool:3374\n").c_str());
  EXPECT_EQ(fix_ids(miner), std::vector<std::string>{"take-release-with-code"});
}

TEST(Remedies, APackageWithAnIndexOfItsOwnIsTakenFromThereForAnyGpu) {
  const Finding finding = finding_of(
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
      "torch_scatter version: 2.0.9\n");
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_EQ(finding.fixes.front().id, "workaround");
  EXPECT_TRUE(any_command(finding, "data.pyg.org"));
}

TEST(Remedies, PtxThatTheDriverDoesNotReadHasASecondWay) {
  EXPECT_EQ(
      fix_ids(finding_of("CUDA failure 222: the provided PTX was compiled with an unsupported toolchain.")),
      (std::vector<std::string>{"update-driver", "build-for-driver"}));
}

// 35 says that the runtime is newer than the driver's CUDA; since CUDA 11, of a newer major version.
TEST(Remedies, ADriverThatIsTooOldHasTheNumberOfTheNext) {
  const auto title = [](const std::string& driver) {
    const Finding finding = finding_of(("CUDA driver version is insufficient for CUDA runtime version\n"
                                        "| NVIDIA-SMI " +
                                        driver + "   Driver Version: " + driver + " |\n")
                                           .c_str());
    return finding.fixes.empty() ? std::string() : finding.fixes.front().title;
  };
  EXPECT_NE(title("384.111").find(std::string(find_toolkit({9, 1})->driver)), std::string::npos);
  EXPECT_NE(title("470.82.01").find(std::string(find_toolkit({12, 0})->minor_driver)), std::string::npos);
}

TEST(Remedies, AListForPyTorchNamesNothingThatTheCudaOfTheLogCannotBuild) {
  const std::string failure =
      "  File \"/x/torch/utils/cpp_extension.py\", line 1606, in _get_cuda_arch_flags\n"
      "    arch_list[-1] += '+PTX'\nIndexError: list index out of range\n";
  EXPECT_TRUE(any_command(finding_of((failure + "Cuda compilation tools, release 11.4, V11.4.48\n").c_str()),
                          "8.6+PTX\""));
  EXPECT_FALSE(
      any_command(finding_of((failure + "Cuda compilation tools, release 11.4, V11.4.48\n").c_str()), "8.9"));
  EXPECT_TRUE(any_command(finding_of((failure + "Cuda compilation tools, release 12.8, V12.8.61\n").c_str()),
                          "12.0+PTX\""));
}

// A list never has the architecture that was refused.
TEST(Remedies, AListForAnOlderPyTorchLeavesOutWhatItRefused) {
  const Finding old =
      finding_of("ValueError: Unknown CUDA arch (8.9) or GPU not supported\nNVIDIA GeForce RTX 4060 Ti\n");
  EXPECT_TRUE(any_command(old, "TORCH_CUDA_ARCH_LIST=\"8.0+PTX\""));
  const Finding named = finding_of(
      "ValueError: Unknown CUDA arch (9.0+PTX) or GPU not supported\n"
      "Cuda compilation tools, release 11.7, V11.7.64\n");
  EXPECT_FALSE(any_command(named, "9.0"));
}

TEST(Remedies, AnOlderCudaIsOneThatTheDriverRuns) {
  const Finding finding = finding_of(
      "nvcc fatal   : Unsupported gpu architecture 'compute_61'\nNVIDIA-SMI 390.48   Driver Version: "
      "390.48\n");
  EXPECT_FALSE(any_command(finding, "cuda-12"));
  EXPECT_TRUE(any_command(finding, "cuda-9.1"));
}

// nvcc has an sm_21 and no compute_21.
TEST(Remedies, NoCommandNamesAnArchitectureThatNvccDoesNotHave) {
  const Finding fermi = finding_of(
      "$ nvcc -o a a.cu\nGPU 0: GeForce GTX 550 Ti (compute capability 2.1)\n"
      "CUDA error: no kernel image is available for execution on the device\n");
  EXPECT_TRUE(any_command(fermi, "compute_20"));
  EXPECT_FALSE(any_command(fermi, "compute_21"));
}

// Another PyTorch leaves the file as it is.
TEST(Remedies, ThePackageThatIsNamedIsTheOneToReplace) {
  const Finding finding = finding_of(
      "Error no kernel image is available for execution on the device at line 167 in file "
      "/tmp/bitsandbytes/csrc/ops.cu\nGPU: GTX 1080 Ti\n");
  ASSERT_FALSE(finding.fixes.empty());
  const auto& arguments = finding.fixes.front().arguments;
  EXPECT_TRUE(std::any_of(arguments.begin(), arguments.end(), [](const auto& each) {
    return each.first == "package" && each.second == "bitsandbytes";
  }));
}

// What the machine that was read cannot do is no fix of it, not even the last one.
TEST(Remedies, NoFixIsBeyondTheMachine) {
  const char* no_image =
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
  const auto of = [&](const std::string& more) { return finding_of((no_image + more).c_str()); };
  const auto builds_torch = [](const Finding& finding) {
    return std::any_of(finding.fixes.begin(), finding.fixes.end(),
                       [](const Fix& fix) { return fix.id == "build-from-source" || fix.id == "rebuild"; });
  };
  // PyTorch was never published for Windows with a CUDA for 3.0; a Jetson has the CUDA of its JetPack.
  const Finding kepler = of("GeForce GTX 660 Ti, torch 1.6.0, C:\\env\\python.exe\n");
  EXPECT_FALSE(builds_torch(kepler));
  EXPECT_EQ(kepler.fixes.front().id, "run-on-cpu");
  const Finding jetson = of("AGX Xavier, JetPack 4.4, torch 1.6.0, CUDA 10.2\n");
  EXPECT_EQ(jetson.fixes.front().id, "install-jetson-wheel");
  EXPECT_FALSE(any_command(jetson, "cuda-12"));
  // TensorFlow's build asks for a newer CUDA and for Linux.
  EXPECT_FALSE(any_command(of("tensorflow 2.3.1, CUDA 10.1, GeForce 940MX, cudart64_101.dll\n"), "bazel"));
  // A release has wheels for some Pythons.
  const Finding old = of("torch 1.13.0+cu117, python3.7/site-packages, NVIDIA GeForce GTX 980\n");
  EXPECT_FALSE(any_command(old, "torch==2"));
}

TEST(Remedies, TheLogFillsInTheCommand) {
  const Finding scatter = finding_of(
      "from torch_scatter import scatter_max\ntorch_scatter version: 2.0.9, torch 1.10.1+cu113\n"
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n");
  EXPECT_TRUE(any_command(scatter, "torch-1.10.0+cu113.html"));
  const char* refused = "CUBLAS_STATUS_ARCH_MISMATCH returned from cublasGemmEx on ";
  const auto kind = [&](const char* gpu) {
    return finding_of((refused + std::string(gpu)).c_str()).fixes.front().kind;
  };
  EXPECT_EQ(kind("Tesla K80"), FixKind::fallback);
  EXPECT_EQ(kind("Tesla T4"), FixKind::code);
  const Finding nvrtc =
      finding_of("NVIDIA L40\n--std=c++17 --gpu-architecture=sm_89\nNVRTC_ERROR_INVALID_OPTION\n");
  ASSERT_FALSE(nvrtc.fixes.empty());
  EXPECT_FALSE(nvrtc.fixes.front().commands.empty());
}

TEST(Windows, WhichCommandsItHas) {
  Facts at;
  at.process.windows = true;
  const auto kept = [&](const std::vector<std::string>& commands) {
    FixDrafts fixes(1);
    for (const std::string& command : commands) fixes[0].steps.push_back(command_of(command));
    keep_for_windows(at, fixes);
    const PythonEnvironment unknown;
    std::vector<std::string> texts;
    for (const Command& command : fixes[0].steps)
      texts.push_back(text_of(command, {unknown, true, at.process.interpreter}));
    return std::pair(texts, fixes[0].caveat.empty());
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(kept({"pip install 'torch==2.11.*' x"}),
            std::pair(Lines{"pip install \"torch==2.11.*\" x"}, true));
  EXPECT_EQ(kept({"nvidia-smi -L", "sudo modprobe nvidia", "ldconfig -p | grep x", "export A=/usr/lib/x",
                  "nvcc --version"}),
            std::pair(Lines({"nvidia-smi -L", "nvcc --version"}), true));
  const std::pair<const char*, const char*> in_powershell[] = {
      {"export A=1 B='x y'", "$env:A = \"1\"; $env:B = \"x y\""},
      {"A=1 B=\"7.5;8.6\" python x.py", "$env:A = \"1\"; $env:B = \"7.5;8.6\"; python x.py"},
      {"A='it is $5' x.exe", "$env:A = 'it is $5'; x.exe"},
      {"unset A B", "Remove-Item Env:A, Env:B"},
      {"cmake -B b && cmake --build b && ctest",
       "cmake -B b; if ($?) { cmake --build b; if ($?) { ctest } }"},
      {"git pull && pip install '.[x]'; y.exe", "git pull; if ($?) { pip install \".[x]\" }; y.exe"}};
  for (const auto& [posix, windows] : in_powershell)
    EXPECT_EQ(kept({posix}), std::pair(Lines{windows}, true)) << posix;
  EXPECT_EQ(kept({"export PATH=/opt/x:\"$PATH\"", "env -u A x.exe"}).first, Lines{})
      << "PowerShell has no such words";
  EXPECT_EQ(kept({"python -c 'print(\"a\")'"}).first, Lines{"python -c 'print(\"a\")'"});
  at.process.interpreter = ".\\python_embeded\\python.exe";
  EXPECT_EQ(kept({"pip install x"}).first, Lines{".\\python_embeded\\python.exe -m pip install x"});
}

TEST(Drivers, TheNumberIsNewerThanTheDriverThatIsThere) {
  Facts at;
  const auto goal = [&] { return goal_of(driver_from(at, "455.23"), at.process.windows); };
  EXPECT_EQ(goal(), " to 455.23 or newer");
  at.driver.cuda = {11, 0};
  EXPECT_EQ(goal(), " to 455.23 or newer");
  at.driver.cuda = {11, 1};
  EXPECT_EQ(goal(), " to one for a CUDA newer than 11.1");
  at.driver.module = "455.22.9";
  EXPECT_EQ(goal(), " to 455.23 or newer");
  at.driver.module = "456.80";
  EXPECT_EQ(goal(), " to one newer than 456.80");
  at.process.windows = true;
  EXPECT_EQ(goal(), " to one newer than 456.80");
}

// The user's own toolkit did not make the PTX of a finished program.
TEST(Drivers, TheUsersToolkitDoesNotSayWhatAFinishedProgramNeeds) {
  const Finding finished = finding_of(
      "Failed to load CUDA kernel from '/opt/blender/lib/kernel_compute_75.ptx' (Unsupported PTX version)\n"
      "A100, CUDA 11.1 is installed here\n");
  ASSERT_FALSE(finished.fixes.empty());
  EXPECT_EQ(finished.fixes.front().kind, FixKind::upgrade_driver);
  EXPECT_EQ(finished.fixes.front().title.find_first_of("0123456789"), std::string::npos);
  const Finding built = finding_of(
      "$ cmake --build . \n"
      "nvcc: Cuda compilation tools, release 12.4, V12.4.131\n"
      "CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
      "A100\n");
  ASSERT_FALSE(built.fixes.empty());
  EXPECT_NE(built.fixes.front().title.find("550"), std::string::npos);
}

TEST(Drivers, OfWindowsWithSlashesTheOtherWay) {
  const Explanation explanation = explain_text(
      "[ D:/render/src/accel.cpp:618 ] FATAL the provided PTX was compiled with an unsupported toolchain\n"
      "driver version 516.40, RTX 3060\n",
      {});
  EXPECT_TRUE(explanation.windows);
  EXPECT_FALSE(explain_text("see https://x.org/y\ncudaErrorNoKernelImageForDevice\n", {}).windows);
}

TEST(Windows, ItsDriversHaveNumbersOfTheirOwn) {
  EXPECT_EQ(driver_release("525.60.13", false), "525.60.13");
  EXPECT_EQ(driver_release("525.60.13", true), "527.41");
  EXPECT_EQ(driver_release("525.60.99", true), "525");
  EXPECT_EQ(title_of(UpdateDriver{"525.60.13"}, true), "Update the driver to 527.41 or newer");
}

TEST(Windows, ALogOfItIsAnsweredInItsWords) {
  const char* text =
      "Traceback (most recent call last):\n"
      "  File \"C:\\Users\\bob\\proj\\train.py\", line 41, in <module>\n"
      "  File \"D:\\venvs\\t\\Lib\\site-packages\\torch\\nn\\modules\\module.py\", line 1751, in _call_impl\n"
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
      "NVIDIA GeForce RTX 5070 Ti, torch 2.6.0+cu124\n";
  const Explanation explanation = explain_text(text, {});
  EXPECT_TRUE(explanation.windows);
  const Finding& finding = explanation.findings.front();
  ASSERT_EQ(finding.where.size(), 1U);
  EXPECT_EQ(finding.where.front().line, 41U);
  EXPECT_FALSE(any_command(finding, "'"));
  RenderOptions options;
  options.width = 60;
  const std::string page = rendered(explanation, Format::text, options);
  EXPECT_EQ(page.find(" \\\n"), std::string::npos);
}

}  // namespace
}  // namespace kshim::test
