#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A code names a family; what stands beside it tells the story: cause, person and first step for logs that differ in one fact."""
import json
import re

import e2e

COUNT = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error {}: "
MISMATCH = COUNT.format(803) + "system has unsupported display driver / cuda driver combination"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
INVALID_PTX = 'DriverError(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed")'
PTX = "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."

# Log, cause, actor of the first fix, what its title or commands hold.
FAMILIES = [
    # 803: another maker's stack, an update today, compat in a path, a container, else the command that decides.
    ([MISMATCH], "driver-mismatch", "you", r"ldconfig -p"),
    (["export LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/cuda/lib64", MISMATCH], "driver-mismatch", "you", r"grep -v compat"),
    (["/usr/local/cuda-12.4/compat/libcuda.so.1", MISMATCH], "driver-mismatch", "you", r"grep -v compat"),
    (["docker run --gpus all vllm/vllm-openai:v0.15.0", MISMATCH], "driver-mismatch", "you", r"/usr/local/nvidia/lib64"),
    (["export LD_LIBRARY_PATH=/usr/local/corex/lib64", MISMATCH], "driver-mismatch", "you", r"one maker"),
    (["unattended-upgrades: nvidia-driver-580", MISMATCH], "driver-mismatch", "you", r"/proc/driver/nvidia/version; modinfo"),
    # nvidia-smi's CUDA beyond its driver's branch is the CUDA of a compat package.
    (["Driver Version: 545.23.08    CUDA Version: 12.5", MISMATCH], "driver-mismatch", "you", r"grep -v compat"),
    (["Driver Version: 580.95.05    CUDA Version: 13.0", MISMATCH], "driver-mismatch", "you", r"ldconfig -p"),
    # 218: a target above the GPU.
    (["CUDA_COMPUTE_CAP=86 cargo build --release", "Tesla T4", INVALID_PTX], "ptx-newer-than-device", "you", r"CUDA_COMPUTE_CAP=75"),
    (["text-embeddings-inference:cuda-90-1.7", "NVIDIA L4", INVALID_PTX], "ptx-newer-than-device", "you", r"89"),
    # A call that looks for GPUs loads no image.
    (["CUDA failure 500: named symbol not found ; GPU=-1 ; expr=cudaGetDeviceCount(&n);", "NVIDIA GeForce RTX 3060", "WSL2"], "driver-mismatch", "admin", r"Windows"),
    # A cache of compiled kernels that two GPUs, or two releases, share.
    (["/data/quack_cache/kernels.o", "CUDA error 200: device kernel image is invalid"], "stale-cache-artifact", "you", r"cache"),
    (["node-a: Tesla T4", "node-b: Tesla V100", "/home/u/.triton/cache/x", "CUDA error: invalid device function (98)"], "stale-cache-artifact", "you", r"cache"),
    # Whose step it is.
    (["#SBATCH --gres=gpu:1", "srun python train.py", "Driver Version: 535.104.05 CUDA Version: 12.2", PTX], "ptx-newer-than-driver", "you", r"12\.2"),
    (["Driver Version: 535.104.05 CUDA Version: 12.2", PTX], "ptx-newer-than-driver", "admin", r"driver"),
    (["runpod.io, 8x H100", COUNT.format(802) + "system not yet initialized"], "unknown", "you", r"another machine"),
    ([COUNT.format(802) + "system not yet initialized"], "unknown", "admin", r"fabricmanager"),
    # A number that refutes the message.
    (["libcuda.so.560.35.03", "cudart 12.4", "CUDA driver version is insufficient for CUDA runtime version (35)"], "driver-mismatch", "you", r"libcuda"),
    (["Driver Version: 575.57.08    CUDA Version: 12.9", "Cuda compilation tools, release 12.1, V12.1.105", "what():  CUDA driver version is insufficient for CUDA runtime version"], "driver-mismatch", "you", r"libcuda"),
    (["Driver Version: 525.60.13    CUDA Version: 12.0", "cudart 12.9", "CUDA driver version is insufficient for CUDA runtime version (35)"], "driver-too-old", "admin", r"driver"),
    # 999 after a sleep of the machine is nvidia_uvm's, else nothing tells.
    (["It worked until the laptop woke up from suspend.", "panic: CUDA_ERROR_UNKNOWN"], "unknown", "you", r"nvidia_uvm"),
    (["after hibernation:", "cudaMalloc failed: unknown error (999)"], "unknown", "you", r"nvidia_uvm"),
    # A compiler that has its own list of architectures.
    (["nvcc cannot target gpu arch 120. Available nvcc targets are [50, 60, 70, 75, 80, 86, 89, 90]."], "nvrtc-arch-unsupported", "you", r"12\.8"),
    (["CUDA 11.7", "nvcc cannot target gpu arch 89. Available nvcc targets are [35, 50, 75, 80, 86]."], "nvrtc-arch-unsupported", "you", r"CUDA_COMPUTE_CAP=86"),
    (["clang++: error: unsupported CUDA gpu architecture: sm_100"], "nvrtc-arch-unsupported", "you", r"clang"),
    (["xla/stream_executor/gpu/asm_compiler.cc:231] Falling back to the CUDA driver for PTX compilation; ptxas does not support CC 8.9",
      "XlaRuntimeError: INTERNAL: CUDA_ERROR_NOT_FOUND: named symbol not found"], "nvrtc-arch-unsupported", "you", r"export PATH=.*11\.8"),
    # Kokkos has no AMPERE100: it is not sm_100.
    (["-D Kokkos_ARCH_AMPERE100=ON", "Kokkos::Cuda::initialize ERROR: likely mismatch of architecture", "Tesla V100"], "no-image-for-arch", "you", r"VOLTA70"),
    # Nothing of NVIDIA's is there.
    (["Graphics: Intel UHD Graphics 620", 'docker: could not select device driver "" with capabilities: [[gpu]]'], "no-device", "you", r"--gpus"),
    (["Graphics: Intel UHD Graphics 620, NVIDIA GeForce GTX 1650", 'docker: could not select device driver "" with capabilities: [[gpu]]'], "no-device", "you", r"nvidia-container-toolkit"),
    (["8x AMD Instinct MI250X, ROCm 6.2", "OSError: CUDA_HOME environment variable is not set."], "library-not-found", "you", r"ROCm"),
    # The list that a warning gives is the warning's, whatever failed before it.
    (["node1:1:1 [0] transport/net.cc:10 NCCL WARN Cuda failure 98 'invalid device function'",
      "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
      "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90."], "no-image-for-arch", "you", r"PyTorch|torch"),
    (["node1:1:1 [0] transport/nvls.cc:245 NCCL WARN Cuda failure 1 'invalid argument'"], "unknown", "you", r"NCCL_NVLS_ENABLE=0"),
    # One message of the kernel's log over several lines.
    (["NVRM: installed in this system is not supported by open", "NVRM: nvidia.ko because it does not include the required GPU", "NVRM: System Processor (GSP)."], "no-device", "admin", r"proprietary"),
    (["torch 2.5.1+cu1241", "5080 driver 596.32", NO_IMAGE], "no-image-for-arch", "you", r"torch==2\."),
]

# What kshim does not know is a failure of CUDA's all the same: quoted, exit status 1.
UNKNOWN = [
    "cuda driver library init failure: 999",
    "[ ERROR: CUDA Runtime ] gemm.cu:40: invalid argument",
    "CUDA error (csrc/hopper/flash_fwd_launch_template.h:188): invalid argument",
    "cuInit failed: 3 (initialization error)",
    "CUDA error: frobnication of the warp scheduler failed",
    "cudaGraphLaunch failed",
]
# The same message with other blanks, case and punctuation.
SPELLINGS = [
    "RuntimeError: system has unsupported display driver  /  cuda driver combination",
    "runtimeerror: SYSTEM HAS UNSUPPORTED DISPLAY DRIVER/CUDA DRIVER COMBINATION",
    "RuntimeError: unsupported display driver / cuda driver combination",
]
NOT_CUDA = [
    "hipErrorInvalidImage: device kernel image is invalid",
    "hipBLASLt error: invalid device function\nTensileLibrary.dat: gfx1103",
]

NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled"
# Log, what the answer holds.
OTHERS = [
    ([NO_CUDA], r"--index-url"),
    (["/Users" + "/ann/miniconda3/lib/python3.11/site-packages/torch/cuda/__init__.py", NO_CUDA], r"mps"),
    (["I don't have an NVIDIA GPU.", NO_CUDA], r"the CPU"),
    (["I don't have a GPU at home, here is one: NVIDIA GeForce RTX 3060", NO_CUDA], r"--index-url"),
    (["C:/Users" + "/bob/x.py", NO_CUDA], r"--index-url"),
    (["HIP error: invalid device function", "AMD Radeon RX 6700 XT (gfx1031)"], r"HSA_OVERRIDE_GFX_VERSION=10\.3\.0"),
    (["HIP error: invalid device function", "Radeon RX 580 (gfx803)"], r"rocminfo"),
    (["GPU: gfx1030 AMD Radeon RX 6900 XT", "details: CUDA error 35 CUDA driver version is insufficient for CUDA runtime version", "Aborted (core dumped)"],
     r"build for ROCm"),
    (["rocminfo says gfx1101", "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected"], r"build for ROCm"),
    (["gfx1036 drives the screen, GPU 0: NVIDIA GeForce RTX 4070 computes", "CUDA error 35 CUDA driver version is insufficient"], r"(?!.*ROCm)nvidia-smi"),
    ([">>> ort.get_available_providers()", "['AzureExecutionProvider', 'CPUExecutionProvider']"], r"onnxruntime-gpu"),
]


class Families(e2e.Case):
    def explained(self, lines):
        (self.folder / "a.log").write_text("\n".join(lines) + "\n")
        done = self.kshim("explain", "--log", "a.log", "--format", "json")
        return done.returncode, json.loads(done.stdout)["findings"]

    def test_the_story_comes_from_what_stands_beside_the_code(self):
        for lines, cause, who, holds in FAMILIES:
            with self.subTest(lines):
                status, findings = self.explained(lines)
                self.assertEqual(status, 1)
                fix = findings[0]["fixes"][0]
                self.assertEqual((findings[0]["cause"], fix["who"]), (cause, who), fix)
                self.assertRegex("\n".join([fix["title"], *fix["commands"]]), holds)

    def test_no_hole_ends_as_green(self):
        for line in UNKNOWN:
            with self.subTest(line):
                status, findings = self.explained([line])
                self.assertEqual((status, findings[0]["cause"]), (1, "unknown"))
                self.assertIn("a.log:1", self.kshim("explain", "--log", "a.log").stdout)

    def test_messages_match_without_regard_to_blanks_and_case(self):
        for line in SPELLINGS:
            with self.subTest(line):
                self.assertEqual(self.explained([line])[1][0]["code"], 803)

    def test_another_makers_errors_are_not_cudas(self):
        for text in NOT_CUDA:
            with self.subTest(text):
                self.assertEqual(self.explained(text.split("\n")), (0, []))

    def test_what_is_no_failure_of_cudas_depends_on_the_machine(self):
        for lines, holds in OTHERS:
            with self.subTest(lines):
                (self.folder / "a.log").write_text("\n".join(lines) + "\n")
                self.assertRegex(self.kshim("explain", "--log", "a.log").stdout, holds)

    def test_an_answer_has_fifteen_lines(self):
        for lines, *_ in FAMILIES:
            self.explained(lines)
            answer = self.kshim("explain", "--log", "a.log").stdout.splitlines()
            self.assertLessEqual(len(answer), 15, "\n".join(answer))
            self.assertTrue(any(re.match(r"Do this \[|To decide:", line) for line in answer), answer)


if __name__ == "__main__":
    e2e.main()
