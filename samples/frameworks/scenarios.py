# SPDX-License-Identifier: Apache-2.0
"""The scenarios of this folder: what runs, on what, and what kshim must say. `run` runs them."""
from wheels import PYTHON, Scenario

GTX1080 = "6.1,name=GeForce GTX 1080"
TENSORFLOW, JAX, ONNX = (PYTHON, "with_tensorflow.py"), (PYTHON, "with_jax.py", "--driver-alone"), (PYTHON, "with_onnxruntime.py", "--preload")
UNCHECKED = ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1",)  # CUPTI of CUDA 13.5 does not even tell its version on a simulated driver
OLD_CUDNN = "LD_LIBRARY_PATH=@cudnn-9.1@/nvidia/cudnn/lib"

SCENARIOS = (
    Scenario("tensorflow-h100", "cuda12", "TensorFlow on a GPU that the wheel has", ("9.0",), TENSORFLOW, quiet=True, programs=("conv (1, 8, 8, 4)",)),
    Scenario("tensorflow-rtx5090", "cuda12", "and on one that it compiles its PTX for", ("12.0",), TENSORFLOW, quiet=True,
             programs=("conv (1, 8, 8, 4)",)),
    Scenario("tensorflow-gtx1080", "cuda12", "on a GPU that cuDNN has dropped", (GTX1080,), TENSORFLOW, 1,
             ("cudnn-mismatch", "does not serve a GPU of compute capability 6.1", "nvidia-cudnn-cu12==9.10.*")),
    Scenario("tensorflow-old-cudnn", "cuda12", "a cuDNN in LD_LIBRARY_PATH, older than TensorFlow was built with", ("9.0",), TENSORFLOW, 1,
             ("cudnn-mismatch", "is older than the 9.3.0 that tensorflow 2.20.0 was built with", "LD_LIBRARY_PATH"), variables=(OLD_CUDNN,),
             programs=("Loaded runtime CuDNN library: 9.1.0",), log_says=("cudnn-mismatch",)),
    Scenario("tensorflow-no-cublas", "cuda12", "no cuBLAS where TensorFlow looks for it: it goes on without the GPU", ("9.0",), TENSORFLOW,
             says=("used no kernel",), without=("nvidia/cublas",),
             programs=("Cannot dlopen some GPU libraries", "sees 0 GPU"), log_says=("library-not-found",)),
    Scenario("tensorflow-two-places", "cuda12", "a cuDNN for CUDA 13 in LD_LIBRARY_PATH", ("9.0",), TENSORFLOW,
             says=("mixed-cuda-libraries",), variables=("LD_LIBRARY_PATH=@cudnn-cu13@/nvidia/cudnn/lib",)),
    Scenario("jax-h100", "cuda12", "JAX on the GPU", ("9.0",), JAX, quiet=True, programs=("runs on gpu", "conv (1, 4, 8, 8)")),
    Scenario("jax-rtx5090", "cuda12", "and on a Blackwell GPU", ("12.0",), JAX, quiet=True, programs=("runs on gpu", "conv (1, 4, 8, 8)")),
    Scenario("jax-gtx1080", "cuda12", "on a GPU that cuDNN has dropped", (GTX1080,), JAX, 1,
             ("cudnn-mismatch", "does not serve a GPU of compute capability 6.1")),
    Scenario("jax-old-cudnn", "cuda12", "parts of an older cuDNN in LD_LIBRARY_PATH", ("9.0",), JAX, 139,
             ("cudnn-mismatch", "finds parts of cuDNN 9.1.0 in LD_LIBRARY_PATH", "9.28"), variables=(OLD_CUDNN,),
             log_says=("library-not-found", "SUBLIBRARY_LOADING_FAILED")),
    Scenario("jax-no-device-file", "cuda12", "JAX as it is: without /dev/nvidia0 it does not ask the driver", ("9.0",), (PYTHON, "with_jax.py"),
             says=("used no kernel",), quiet=True, programs=("runs on cpu",)),
    Scenario("jax-cuda13-h100", "jax-cuda13", "JAX with CUDA 13", ("9.0",), JAX, quiet=True, variables=UNCHECKED, programs=("runs on gpu", "conv (1, 4, 8, 8)")),
    Scenario("jax-cuda13-gb10", "jax-cuda13", "and on a GB10", ("12.1",), JAX, quiet=True, variables=UNCHECKED,
             programs=("runs on gpu", "conv (1, 4, 8, 8)")),
    Scenario("jax-cuda13-gtx1080", "jax-cuda13", "on a GPU that CUDA 13 has dropped", (GTX1080,), JAX, 1,
             ("libcublas.so.13 has no code", "CUDA 8.0 to 12.9", "Use a build of the program for CUDA 12"), variables=UNCHECKED),
    Scenario("onnxruntime-h100", "cuda12", "ONNX Runtime on the GPU", ("9.0",), ONNX, quiet=True, programs=("uses CUDAExecutionProvider", "(1, 4, 8, 8)")),
    Scenario("onnxruntime-rtx5090", "cuda12", "and on one that it compiles its PTX for", ("12.0",), ONNX, quiet=True,
             programs=("uses CUDAExecutionProvider", "(1, 4, 8, 8)")),
    Scenario("onnxruntime-gtx750", "cuda12", "on a GPU older than any of its code", ("5.0",), ONNX, 1,
             ("ptx-newer-than-device", "libonnxruntime_providers_cuda.so of onnxruntime-gpu 1.22.0", "needed    sm_50", "with_onnxruntime.py:")),
    Scenario("onnxruntime-no-libraries", "cuda12", "NVIDIA's libraries are not preloaded: it goes on on the CPU", ("9.0",),
             (PYTHON, "with_onnxruntime.py"), programs=("Failed to load library", "uses CPUExecutionProvider"),
             log_says=("library-not-found", "libcublasLt.so.12", "preload_dlls")),
    Scenario("onnxruntime-old-cudnn", "cuda12", "an older cuDNN of the same major version in LD_LIBRARY_PATH", ("9.0",), ONNX,
             variables=(OLD_CUDNN,), programs=("uses CUDAExecutionProvider",)),
)
