#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose failure it is, and what its user can do: logs in the words of people who ask for help. Each has the owner that the headline names, what the first fix
says, and what no command of it may hold."""
import json
import re

import e2e

NO_IMAGE = "CUDA error: no kernel image is available for execution on the device"
RAISED = "RuntimeError: " + NO_IMAGE
PTX = "CUDA error: the provided PTX was compiled with an unsupported toolchain."
OLD_DRIVER = "CUDA driver version is insufficient for CUDA runtime version"
BLACKWELL = ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
             "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.")

# Log, headline, first fix, never in a command.
NAMED = [
    # A search that goes on is no failure: what is missing in the end is.
    (["CUDA_SETUP: WARNING! libcudart.so not found in any environmental path. Searching in backup paths...", "bitsandbytes/libbitsandbytes_cuda118.so...",
      "libcusparse.so.11: cannot open shared object file: No such file or directory"], r"libcusparse\.so\.11 is missing for bitsandbytes", r"library", None),
    # The prompt, the command line, a prefix of the line, a service, an image, a folder.
    (["user@box:~/llama.cpp$ ./build/bin/llama-cli -m 7b.gguf", "Device 0: Tesla P40, compute capability 6.1", NO_IMAGE], r"llama\.cpp", r"llama\.cpp.*for sm_61", None),
    (["ann@lab3:~/src/polyclip$ make run", "./bin/clip --gpu", NO_IMAGE, "GPU 0: NVIDIA GeForce GTX 1080"], "polyclip", "sm_61", "pip"),
    ([r"PS D:\ai\FramePack> python demo_gradio.py", RAISED, "RTX 5080"], "FramePack", r"cu12[89]", None),
    (["(rvc) joe@desk:/data/work/Retrieval-Voice$ python infer.py", RAISED, "RTX 5070 Ti"], "Retrieval-Voice", "PyTorch", None),
    (["$ ./hashmine --device 0", NO_IMAGE, "GPU #0: GeForce GTX 750 Ti"], "hashmine", "sm_50", "pip"),
    ([r"C:\miners> rigel.exe -a kawpow", NO_IMAGE, "GPU: RTX 5070"], "rigel", "rigel", "pip"),
    (["$ colmap patch_match_stereo --workspace_path dense", "CUDA error at " + NO_IMAGE, "NVIDIA GeForce RTX 5090"], "colmap", "sm_120", "pip"),
    (["     Running `target/release/raytrace --scene a`", "Error: DriverError(CUDA_ERROR_NO_BINARY_FOR_GPU)", "Tesla K80"], "raytrace", "sm_37", "pip"),
    (["Aug 01 10:00:00 host frigate[1234]: CUDA failure 209: " + NO_IMAGE, "Quadro K620"], "frigate", "frigate", "pip"),
    (["[reaper] start", "[reaper] " + NO_IMAGE, "[reaper] GPU: Tesla P40"], "reaper", "sm_61", "pip"),
    (["[pod/segment-7f9c/server] CUDA error: " + NO_IMAGE, "[pod/segment-7f9c/server] NVIDIA B200"], "segment", "sm_100", "pip"),
    (["comfyui  | Device: cuda:0 NVIDIA GeForce RTX 5090", "comfyui  | " + RAISED], "comfyui", "docker compose pull comfyui", None),
    (["photos-1  | start", "photos-1  | CUDA failure 209: " + NO_IMAGE, "photos-1  | NVIDIA GeForce GTX 960"], "photos", "docker compose images photos", None),
    (["$ docker run --rm --gpus all ghcr.io/speech/dictate:latest-cuda", RAISED.replace("error:", "failed with error"), "NVIDIA GeForce GTX 970"], "dictate", "docker pull ghcr.io/speech/dictate:TAG", None),
    (["    image: ghcr.io/voices/kokoro-gpu:v0.2.2", RAISED, "NVIDIA GeForce RTX 5060 Ti"], "kokoro-gpu", "docker pull", None),
    # faiss-gpu 1.14 is for Python 3.10 and newer: the old release would be gone, and none would come.
    (["Python 3.8.10", "faiss-gpu 1.7.2", "NVIDIA H100", "Faiss assertion failed: " + NO_IMAGE], "faiss", "new environment", "uninstall"),
    # What stands in no file, and a folder to build in, name nothing.
    (["$ mkdir build-volta && cd build-volta", NO_IMAGE, "Tesla V100"], "^(?!.*build-volta)", "sm_70", None),
    (["UserWarning: A GPU with NVIDIA Pascal (Compute Capability 6.0) or newer architecture is required.", "Detected GPU 0: Tesla M60", "Detected Compute Capability: 5.2", '  File "<stdin>", line 1, in <module>',
      "RuntimeError: This cuDF installation is missing the necessary PTX files that are <=52."], "^(?!.*stdin).*cuDF", "", "cmake"),
    # On an image of a toolkit alone, its user installs the framework.
    (["FROM nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04", RAISED, "NVIDIA GeForce RTX 5090"], "PyTorch", "torch==", "docker pull"),
    (["git clone https://github.com/lab/gridfold.git", NO_IMAGE, "NVIDIA H100"], "gridfold", "sm_90", "pip"),
    # The innermost compiled package of a traceback, known to a table or not.
    (['  File "/x/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 700, in run', '  File "/x/lib/python3.12/site-packages/kvmove/connector.py", line 300, in send', "    kv_ops.transfer(a, b)", RAISED,
      "NVIDIA RTX PRO 6000 Blackwell Server Edition"], "kvmove", "kvmove", "vllm"),
    (['  File "/x/lib/python3.10/site-packages/splatter/__init__.py", line 96, in forward', "    out = _C.rasterize(*args)", RAISED, "torch 2.7.1+cu128", "NVIDIA GeForce RTX 5090"], "splatter", r"ARCH_LIST=\"12\.0", "splatter$|torch=="),
    (['  File "/v/lib/python3.11/site-packages/spconv/pytorch/conv.py", line 741, in forward', '  File "/v/lib/python3.11/site-packages/torch/autograd/function.py", line 575, in apply', RAISED, "NVIDIA H100", "torch 2.4.1"],
     "spconv", "spconv", "torch=="),
    # What carries another's source is what its user installs.
    (["koboldcpp-1.60", "in function ggml_cuda_compute_forward at ggml-cuda.cu:13061", NO_IMAGE, "RTX 5060"], "KoboldCpp", "KoboldCpp", "cmake"),
    ([r"C:\Users\b\AppData\Roaming\Jan\data\llamacpp\backends\b6000\llama-server.exe", "ggml_cuda_init: Device 0: NVIDIA GeForce GTX 980, compute capability 5.2", NO_IMAGE], "Jan", "Jan", "cmake"),
    (["Starting Text generation web UI", "ggml_cuda_compute_forward: MUL_MAT failed", NO_IMAGE, "Tesla M40"], "text-generation-webui", "text-generation-webui", "cmake"),
    # What works is not what fails.
    (["The PyTorch matmul test works on the GPU, torch 2.7.0+cu128 is fine.", RAISED, "NVIDIA GeForce RTX 5090"], "beside PyTorch", "kshim scan", "torch=="),
    (["tensor([0.5123], device='cuda:0')", ">>> import mamba_ssm", RAISED, "torch 2.8.0+cu128", "RTX 5090"], "mamba_ssm", "mamba_ssm", "torch=="),
    (["vLLM works fine on this card, llama.cpp too. Only exllamav2 0.2.8 crashes with", RAISED, "torch 2.7.1+cu128, RTX 5080"], "exllamav2", "exllamav2", "vllm"),
    (["TensorFlow trains without problems.", "jax 0.4.30: XlaRuntimeError: INTERNAL: " + NO_IMAGE, "Tesla K80"], "JAX", "JAX", "tensorflow"),
    (["PyTorch works with an A100, not here.", RAISED, "RTX 5090"], "PyTorch", "PyTorch", None),
    (["PyTorch 2.4 worked before the upgrade.", RAISED, "RTX 5090"], "PyTorch", "PyTorch", None),
]

# Log, first fix, its actor, never in a command or in a step of the user's.
STEPS = [
    # A compiler that works for the GPU at hand has no list of architectures.
    (["RuntimeError: Internal Triton PTX codegen error:", "ptxas /tmp/compile-ptx-src-1, line 9; error : Feature '.bf16' requires .target sm_80 or higher"],
     r"data type.*sm_80", "you", r"nvidia-smi"),
    (["ptxas kernels.ptx, line 9; error : Feature '.bf16' requires .target sm_80 or higher"], r"list", "you", None),
    # What was tried is not proposed again.
    (["The NVIDIA driver on your system is too old (found version 11040).", "I updated the driver to 550, still the same message."], r"which (?:driver|libcuda)", "you", None),
    (["What I tried:", "- reinstalled the NVIDIA driver", "The NVIDIA driver on your system is too old (found version 11040)."], r"which (?:driver|libcuda)", "you", None),
    (["Failed to initialize NVML: Driver/library version mismatch", "I rebooted twice, the message stays: no luck."], r"one release", "admin", None),
    (["Failed to initialize NVML: Driver/library version mismatch"], r"Restart", "you", None),
    # A sentence that says what helped.
    ([RAISED, "bitsandbytes 0.42.0, RTX 5090", "Fixed by upgrading bitsandbytes to 0.45.3."], r"bitsandbytes==0\.45\.3", "you", None),
    ([PTX, "llama-cpp-python 0.3.4, driver 535.183", "It worked after I downgraded to llama-cpp-python 0.2.90."], r"==0\.2\.90", "you", None),
    # Windows without a GPU for Linux.
    (["Linux DESK 4.4.0-19041-Microsoft x86_64 GNU/Linux", "RuntimeError: No CUDA GPUs are available"], r"set-version DISTRIBUTION 2", "you", "apt"),
    (["  NAME      STATE           VERSION", "* Ubuntu    Running         1", "RuntimeError: Found no NVIDIA driver on your system."], r"set-version DISTRIBUTION 2", "you", "apt"),
    (["Microsoft Windows [Version 10.0.18363.1556]", "WSL2 Ubuntu 20.04", "RuntimeError: Found no NVIDIA driver on your system."], r"wsl --update", "you", "LD_LIBRARY_PATH"),
    (["WSL2 Ubuntu 22.04", "RuntimeError: Found no NVIDIA driver on your system."], r"/usr/lib/wsl/lib", "you", None),
    # The driver of a hosted notebook is its provider's.
    (["Google Colab, T4", PTX, "Driver Version: 550.54.15   CUDA Version: 12.4"], r"12\.4", "you", None),
    (["/kaggle/working/train.py", "RuntimeError: CUDA error: " + OLD_DRIVER, "Driver Version: 470.161.03  CUDA Version: 11.4", "torch 2.4.0+cu124"], r"cu118", "you", None),
    (["sagemaker-user@default:~$ python train.py", "The NVIDIA driver on your system is too old (found version 11040)."], r"11\.4", "you", None),
    (["/content/drive/MyDrive", "cudaErrorInsufficientDriver: " + OLD_DRIVER, "nvidia driver 535.104.05", "cupy-cuda13x 13.6.0"], r"cupy-cuda12x", "you", None),
    # What a project asks for at least.
    (["Unsloth: needs CUDA capability >= 7.0", "unsloth 2025.3", NO_IMAGE, "Tesla P40"], r"7\.0 or newer", "you", "no-binary|nvcc"),
    (["vLLM requires GPU compute capability 7.0 or higher.", "GTX 1080 Ti", RAISED], r"Another|another program", "you", "no-binary|nvcc"),
    (["SageAttention requires compute capability 8.0 or higher", "RTX 4090", RAISED, "sageattention 2.1.1"], r"sm_89", "you", None),
    (["RAPIDS requires Volta (compute capability 7.0) or higher", "cudf.errors: cudaErrorNoKernelImageForDevice", "GeForce GTX 1080"], r"23\.12", "you", None),
    # A Jetson's driver comes with its system.
    (["AGX Orin, L4T R35.4.1", "RuntimeError: " + PTX, "cuda 12.2"], r"JetPack", "you", "apt"),
    (["Jetson Xavier NX JetPack 4.6", OLD_DRIVER, "cuda 11.4"], r"JetPack", "you", "apt"),
    (["# R36 (release), REVISION: 4.3", NO_IMAGE, "onnxruntime-gpu 1.19"], r"JetPack", "you", "nvidia-smi"),
    # Packages that are built for one another.
    ([*BLACKWELL, "torch 2.5.1+cu124 xformers 0.0.28.post3"], r"torch==2\.7.*xformers", "you", "no-deps"),
    ([r'File "C:\webui\venv\lib\site-packages\xformers\ops\fmha\flash.py", line 100, in _flash_fwd', RAISED, "RTX 5070", "torch: 2.1.2+cu121 xformers: 0.0.23.post1"], r"torch==2\.7.*xformers", "you", "no-deps"),
    # The PTX says what it is of before somebody changes its number.
    (["Patch PTX version from 8.7 to 8.0", "CUDA error 222: " + PTX], r"570", "admin", None),
    # Memory that is free is not what is missing.
    (["CUDA error: out of memory", "VRAM: free 14.56 / 15.92 GiB", "tensor.pin_memory()"], r"else limits", "you", None),
    # A wheel that pip lists is there; one of another major version is not.
    (["$ pip list", "nvidia-cublas-cu12        12.4.5.8", "app: libcublas.so.12: cannot open shared object file"], r"LD_LIBRARY_PATH=.*/nvidia/.*/lib", "you", "pip install"),
    (["$ pip list", "nvidia-cudnn-cu12        9.1.0.70", "app: libcudnn.so.8: cannot open shared object file"], r"library", "you", "LD_LIBRARY_PATH="),
    # A name of several GPUs is none of them.
    (["RTX 6000, torch 2.5.1+cu124", RAISED], r"your GPU", "you", "sm_"),
]


class Owners(e2e.Case):
    def explained(self, lines):
        """The headline, the first fix, and what this says and types."""
        (self.folder / "a.log").write_text("\n".join(lines) + "\n")
        fix = json.loads(self.kshim("explain", "--log", "a.log", "--format", "json").stdout)["findings"][0]["fixes"][0]
        return self.kshim("explain", "--log", "a.log").stdout.splitlines()[0], fix, "\n".join([fix["title"], *fix["commands"]])

    def holds(self, fix, said, wanted, never):
        self.assertRegex(said, re.compile(wanted, re.DOTALL))
        if never:
            self.assertNotRegex("\n".join(fix["commands"]), re.compile(never, re.MULTILINE))

    def test_the_headline_names_whose_it_is(self):
        for lines, owner, wanted, never in NAMED:
            with self.subTest(lines):
                headline, fix, said = self.explained(lines)
                self.assertRegex(headline, owner)
                self.holds(fix, said, wanted, never)

    def test_what_pip_has_installed_is_not_installed_again(self):
        missing = "ImportError: libcublas.so.12: cannot open shared object file"
        there = "Requirement already satisfied: nvidia-cublas-cu12 in /v/lib/python3.11/site-packages (12.4.5.8)"
        for lines, wanted in ((["$ pip install x", missing], "install-library-wheel"), ([there, missing], "load-installed-library")):
            with self.subTest(lines):
                self.assertEqual(self.explained(lines)[1]["id"], wanted)

    def test_the_step_is_one_that_its_person_can_take(self):
        for lines, wanted, who, never in STEPS:
            with self.subTest(lines):
                _, fix, said = self.explained(lines)
                self.holds(fix, said, wanted, never)
                self.assertEqual(fix["who"], who)


if __name__ == "__main__":
    e2e.main()
