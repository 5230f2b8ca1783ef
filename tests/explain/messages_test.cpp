// SPDX-License-Identifier: Apache-2.0
// Messages as CUDA, compilers and frameworks print them, and what they are taken for.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyzer/data/knowledge_file.h"
#include "analyzer/input/log/fact_reader.h"
#include "analyzer/input/log/miner.h"
#include "analyzer/verbs/explain.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct Row {
  const char* text;
  Cause cause;
  int code;  ///< 0 = none
};

const Cause none = Cause::unknown;

constexpr Row kRows[] = {
    {"/usr/lib64/libcuda.so: undefined symbol: cuDriverGetVersion", Cause::library_not_found, 0},
    {"ImportError: /w/_ops.so: undefined symbol: cuDeviceGet", none, 0},
    {"cuda_dnn.cc:521] Memory usage: 23500000000 bytes free, 25300000000 bytes total.", Cause::cudnn_mismatch,
     0},
    {"NvRmMemInitNvmap failed with No such file or directory", Cause::no_device, 0},
    {"1c:00.0 VGA compatible controller: NVIDIA Corporation TU102GL (rev ff)", Cause::no_device, 0},
    {"nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible",
     Cause::no_device, 0},
    {"NVRM: gpuWaitForGfwBootComplete_TU102: failed to wait for GFW_BOOT: (progress 0x3)", Cause::no_device,
     0},
    {"socket.cc:397 NCCL WARN Net : connecting to address  with family 33621 is neither AF_INET(2) nor "
     "AF_INET6(10)",
     none, 0},
    {"ERROR: An NVIDIA kernel module 'nvidia-uvm' appears to already be loaded in your kernel.", none, 0},
    {"FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi'", Cause::no_device, 0},
    {"OpenCL: Not detected: clGetPlatformIDs() returned -1001", Cause::library_not_found, 0},
    {"PyTorch and torch_scatter were compiled with different CUDA versions. PyTorch has CUDA version 12.1 "
     "and "
     "torch_scatter has CUDA version 0.0.",
     Cause::mixed_cuda_libraries, 0},
    {"ImportError: cuda.bindings.cydriver does not export expected C function cuDeviceGetUuid_v2", none, 0},
    {"cuda-python 12.9.6 requires cuda-bindings~=12.9.6, but you have cuda-bindings 13.2.0", none, 0},
    {"Faiss assertion 'err__ == cudaSuccess' failed in f(); details: CUDA error 8 invalid device function",
     Cause::no_image_for_arch, 98},
    {"fatal error C1189: #error:  -- unsupported Microsoft Visual Studio version! Only the versions between "
     "2017 and 2019 (inclusive) are supported!",
     none, 0},
    {"n1:7:7 [0] include/alloc.h:112 NCCL WARN Cuda failure 999 'unknown error'", none, 999},
    {"a.cuh(503): error: namespace \"thrust\" has no member \"device\"", none, 0},
    {"(NCudaLib::TOutOfMemoryError) a/stack_like_memory_pool.h:303: Error: Out of memory. Requested 8880 MB; "
     "Free 5902.06 MB",
     Cause::out_of_memory, 2},
    {"pycuda._driver.LogicError: explicit_context_dependent failed: invalid device context - no currently "
     "active context?",
     Cause::context_mismatch, 201},
    {"F tensorflow/core/kernels/resize_bilinear_op_gpu.cu.cc:493] Non-OK-status: GpuLaunchKernel(kernel, "
     "config.block_count) status: Internal: too many resources requested for launch",
     Cause::launch_resources, 701},
    {"Could not find cudnn_LIBRARY using the following names: cudnn, libcudnn.so.", Cause::library_not_found,
     0},
    {"ImportError: libtorch_cuda_cu.so: cannot open shared object file", Cause::library_not_found, 0},
    {"Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open shared object file",
     Cause::library_not_found, 0},
    {"Free memory on device cuda:0 (19.7/22.0 GiB) on startup is less than desired GPU memory utilization "
     "(0.9, 19.8 "
     "GiB)",
     Cause::out_of_memory, 0},
    {"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", Cause::out_of_memory,
     0},
    {"ValueError: No available memory for the cache blocks.", Cause::out_of_memory, 0},
    {"OPTIX_ERROR_PIPELINE_LINK_ERROR in optixPipelineCreate(context, ...) (scene.cpp:61)", Cause::unknown,
     0},
    {"Cannot load libnvidia-encode.so.1", Cause::library_not_found, 0},
    {"dlopen failed: libnvidia-ml.so.1: cannot open shared object file", Cause::no_device, 0},
    {"Could not find module 'nvml.dll'", Cause::no_device, 0},
    {"Could not find module 'nvEncodeAPI64.dll'", Cause::library_not_found, 0},
    {"failed to load libcusolver.so.11", Cause::library_not_found, 0},
    {"Cannot load nvcuda.dll", Cause::no_device, 0},
    {"[h264] Could not dynamically load CUDA", Cause::no_device, 0},
    {"cuda backend: Found cuDNN version 8600, but JAX was built against version 8906, which is newer.",
     Cause::mixed_cuda_libraries, 0},
    {"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000", none, 0},
    {"DKMS module: nvidia-570.133.07... FAILED!", Cause::no_device, 0},
    {"neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.", none, 0},
    {"could not insert 'nvidia': No such device", Cause::no_device, 0},
    {"nvidia-container-cli: container error: cgroup subsystem devices not found", Cause::no_device, 0},
    {"CUDA error: peer access is not supported between these two devices", none, 217},
    {"bootstrap.cc:138 NCCL WARN Bootstrap : no socket interface found", none, 0},
    {"h:1:2 [0] shm.h:27 NCCL WARN Call to shm_open failed : Permission denied", none, 0},
    {"h:1:2 [0] shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", none, 0},
    {"h:1:2 [0] NCCL WARN Error while attaching to shared memory segment nccl-a (size 0)", none, 0},
    {"NCCL WARN NET/OFI Unable to register memory for device 0. RC: 12, Error: Cannot allocate memory", none,
     0},
    {"h: Test CUDA failure common.cu:294 'unspecified launch failure'", Cause::device_fault, 719},
    {"fabric manager interface version 535.54.03 don't match with driver version 535.104.05", none, 0},
    {"cudaGetDevice: all CUDA-capable devices are busy or unavailable", none, 46},
    {"[ERROR] Command not found: nvidia-container-cli", Cause::no_device, 0},
    {"Failed to initialize NVML: Insufficient Permissions", Cause::no_device, 0},
    {"NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":830", Cause::out_of_memory, 2},
    {"cudaHostAlloc(&p, 4096) failed: out of memory", Cause::out_of_memory, 2},
    {"ValueError: invalid literal for int() with base 10: 'GPU-5d5ba0d6'", none, 0},
    {"========= Invalid __global__ read of size 4 bytes", Cause::device_fault, 0},
    {"cuda driver library failed to get device context 801", Cause::no_device, 0},
    {"NVRM: Xid (PCI:0000:17:00): 48, pid=77, An uncorrectable double bit error", none, 0},
    {"NVRM: Xid (PCI:0000:17:00): 74, pid=77, NVLink: fatal error detected", none, 0},
    {"NVRM: Xid (PCI:0000:17:00): 119, pid=77, Timeout after 6s of waiting for RPC response", none, 0},
    {"I.cu:9: block: [1,0,0], thread: [2,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
     Cause::device_fault, 710},
    {"L.cu:9: block: [1,0,0], thread: [2,0,0] Assertion `t >= 0 && t < n_classes` failed.",
     Cause::device_fault, 710},
    {"L.cu:9: block: [1,0,0], thread: [2,0,0] Assertion `target_val >= zero && target_val <= one` failed.",
     Cause::device_fault, 710},
    {"M.cu:9: block: [1,0,0], thread: [2,0,0] Assertion `cumdist[size - 1] > 0` failed.", Cause::device_fault,
     710},
    {"pool: cudaFree failed: driver shutting down", Cause::unknown, 4},
    {"cuMemAlloc_v2(&p, n): out of memory", Cause::out_of_memory, 2},
    {"error: out of memory (src/pool.cu:31)", Cause::out_of_memory, 2},
    {"GPUassert: misaligned address relax.cu 88", Cause::device_fault, 716},
    {"[relax.cu(88)] an illegal instruction was encountered", Cause::device_fault, 715},
    {"cudaMemcpyAsync: 'invalid argument' at stage 2", Cause::unknown, 1},
    {"cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) returned invalid argument",
     Cause::launch_resources, 0},
    {"cudaGraphicsGLRegisterBuffer failed: unknown error", Cause::unknown, 999},
    {"cudaHostRegister failed with error code 712", Cause::unknown, 712},
    {"cudaMallocHost: out of memory", Cause::out_of_memory, 2},
    {"cudaIpcOpenMemHandle: invalid argument", Cause::unknown, 1},
    {"cudaMemPrefetchAsync: invalid device ordinal", Cause::unknown, 101},
    {"cuFFT error: CUFFT_INTERNAL_ERROR", Cause::unknown, 0},
    {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES when calling cusparseCreate", Cause::unknown, 0},
    {"cuInit returned 3: initialization error", Cause::driver_mismatch, 3},
    {"/x/.javacpp/cache/cuda-11.6-8.3-1.5.7-linux-x86_64.jar/libjnicudnn.so: libcudnn.so.8: cannot open "
     "shared object "
     "file",
     Cause::library_not_found, 0},
    {"cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.",
     Cause::no_device, 0},
    {"ptxas fatal: Feature 'cvt with .e4m3x2' requires PTX ISA .version 8.1 or later", Cause::unknown, 0},
    {"Invalid CUDA device index \"1\" from device string cuda:0,1", Cause::invalid_device, 101},
    {"Failed to initialize NVML: GPU access blocked by the operating system", Cause::no_device, 0},
    {"RuntimeError: no supported devices found for platform CUDA", Cause::no_device, 0},
    {"level=INFO source=gpu.go:377 msg=\"no compatible GPUs were discovered\"", Cause::no_device, 0},
    {"UserWarning: Flash attention only supports gpu architectures in the range [sm80, sm121]. Attempting to "
     "run on a sm 7.5 gpu.",
     Cause::library_refuses, 0},
    {"[12:00:01.123][4711][CUDA][E] No device code available for GPU ISA 120", Cause::no_image_for_arch, 209},
    {"=========     CUDA API Error: No device code available for GPU ISA 89", Cause::no_image_for_arch, 209},
    {"[4711][cuLibraryGetKernel][E] Kernel (_Z5saxpyifPKfPf) cannot be found in library due to compilation "
     "error",
     Cause::no_image_for_arch, 0},
    {"- The following list shows the CCs this version of PyTorch was built for and the hardware CCs it "
     "supports:",
     Cause::no_image_for_arch, 0},
    {"Your installed torch==2.14.0+cu130 does not include kernels for this GPU.", Cause::no_image_for_arch,
     0},
    {"ptxas /tmp/jl_a.ptx, line 10; error : PTX .version 8.5 does not support .target sm_120",
     Cause::nvrtc_arch_unsupported, 0},
    {"nothing provides __cuda >=12.0 needed by pytorch-2.4", Cause::driver_too_old, 0},
    {"CUDA compute cap 61 is not compatible with flash attention: requires 80", Cause::library_refuses, 0},
    {"ValueError: Your setup doesn't support bf16/gpu.", Cause::library_refuses, 0},
    {"RuntimeError: No available kernel. Aborting execution.", Cause::library_refuses, 0},
    {"ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 "
     "GPU "
     "has compute capability 7.5.",
     Cause::library_refuses, 0},
    {"RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9",
     Cause::library_refuses, 0},
    {"Current region was compiled for:", Cause::no_image_for_arch, 0},
    {"ValueError: CUDA arch list doesn't contain 12.0", Cause::no_image_for_arch, 0},
    {"WARNING: Detected NVIDIA GB10 GPU, which may not yet be supported in this version of the container",
     Cause::no_image_for_arch, 0},
    {"nvidia-container-cli: mount error: file creation failed: "
     "/var/lib/docker/overlay2/1/merged/usr/lib/aarch64-linux-gnu/libcudnn_static_v8.a: file exists: unknown",
     Cause::mixed_cuda_libraries, 0},
    {"Failed to launch vectorAdd kernel (error code invalid argument)!", none, 1},
    {"Error: This build supports sm_80, sm_86, sm_90; GPU 0 is sm_120", Cause::no_image_for_arch, 0},
    {"FATAL: GPU 0 has compute capability 12.0, but this binary supports 5.0 - 9.0", Cause::no_image_for_arch,
     0},
    {"Error: kernel was compiled for sm_90 but running on sm_89", Cause::no_image_for_arch, 0},
    {"CUDA kernels were compiled for compute capability 7.5, the device has 6.1", Cause::no_image_for_arch,
     209},
    {"GPU compute capability 5.0 is below minimum 6.1", Cause::library_refuses, 0},
    {"Unrecognized SM version 12.1", Cause::library_refuses, 0},
    {"RuntimeError: Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:368 'invalid argument'", none,
     1},
    {"ValueError: Please use \"fp4\" quantization for Blackwell GPUs.", Cause::library_refuses, 0},
    {"the target device or backend do not support efficient float16 computation.", Cause::library_refuses, 0},
    {"INTERNAL: Failed to load in-memory CUBIN (compiled for a different GPU?).: CUDA_ERROR_INVALID_IMAGE: "
     "device kernel image is invalid",
     Cause::driver_too_old_for_image, 200},
    {"INTERNAL: Failed to load in-memory CUBIN (compiled for a different GPU?).", none, 0},
    {"cuda driver library failed to get device context 800time=2026-09-24", Cause::no_device, 0},
    {"RuntimeError: 0 active drivers ([]). There should only be one.", Cause::no_device, 0},
    {"Failed to retrieve cuLaunchKernelEx from libcuda.so.1", Cause::driver_too_old, 0},
    {"RuntimeError: Library libcublas.so.12 is not found or cannot be loaded", Cause::library_not_found, 0},
    {"FlashAttention backward for head dim > 192 requires A100/A800 or H100/H800", Cause::library_refuses, 0},
    {"conflicts with cuda_arch=86 when ^cuda@:11.0", Cause::nvrtc_arch_unsupported, 0},
    {"CUDA sanity check detected files with missing CUDA compute capabilities", Cause::no_image_for_arch, 0},
    {"Only devices with compute capability 3.0 to 7.5 are supported.", Cause::library_refuses, 0},
    {"sparse_semi_structured requires compute capability (8, 0), got (7, 5)", Cause::library_refuses, 0},
    {"Error: MPS control daemon could not be reached", none, 805},
    {"RuntimeError: Detected that PyTorch and torch_spline_conv were compiled with different CUDA versions. "
     "PyTorch has CUDA version 11.8 and torch_spline_conv has CUDA version 12.1.",
     Cause::mixed_cuda_libraries, 0},
    {"Unable to initialize backend 'cuda': Found cuSOLVER version 11500, but JAX was built against version "
     "11700",
     Cause::mixed_cuda_libraries, 0},
    {"-- The CUDA compiler identification is unknown", Cause::library_not_found, 0},
    {"OSError: Unknown compute capability. Specify the target compute capabilities in the "
     "FOO_CUDA_ARCHITECTURES environment variable",
     none, 0},
    {"DriverError(CUDA_ERROR_NOT_FOUND, \"named symbol not found\") when loading badd_bf16",
     Cause::kernel_missing_from_image, 500},
    {"pycuda._driver.LogicError: cuInit failed: initialization error", Cause::fork_after_init, 3},
    {"call to cuModuleGetGlobal returned error 500: Not found", Cause::kernel_missing_from_image, 500},
    {"[OptiX]: Failed to load OptiX library", Cause::driver_too_old, 0},
    {"    assert is_fa_version_supported(version)  # flash_attn", Cause::library_refuses, 0},
    {"    assert is_capability_enough(device)", Cause::library_refuses, 0},
    {"ImportError: libcudss.so.1: cannot open shared object file", Cause::library_not_found, 0},
    {"Your Quadro GV100 GPU (compute capability 7.0) is not supported on CUDA 13+.", Cause::library_refuses,
     0},
    {"Error: compute capability (5.2) is lesser than the minimum required: 6.0", Cause::library_refuses, 0},
    {"E cuda_dnn.cc:300] Loaded runtime CuDNN library: 5105 (compatibility version 5100) but source was "
     "compiled with 4008 (compatibility version 4000).",
     Cause::cudnn_mismatch, 0},
    {"Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED", Cause::out_of_memory, 0},
    {"CUDA kernel compilation failed with error code 6", none, 0},
    {"error: identifier \"cublasLtMatmulDescOpaque_t\" is undefined", none, 0},
    {"Error 304: OS call failed or operation not supported on this OS", none, 304},
    {"`nvidia-smi` failed. Ensure that you have CUDA installed", none, 0},
    {"E:/src/CUDAConvolution.cu(100) : cudaSafeCall() Runtime API error : invalid device symbol.",
     Cause::no_image_for_arch, 13},
    {"WARNING : at least one of your GPUs is not compatible with RELION (CUDA-capable)",
     Cause::no_image_for_arch, 0},
    {"Attempting to use SM80_16x8x16_F32F16F16F32_TN without CUTE_ARCH_MMA_SM80_ENABLED", Cause::compiled_out,
     0},
    {"GPU #0: FATAL: the 't' kernel requires 5.0 capability!", Cause::library_refuses, 0},
    {"ImportError: GPU with CUDA capability 7 0 is not supported", Cause::library_refuses, 0},
    {"void cutlass::arch::ldsm(cutlass::Array<unsigned int, MatrixCount, true> &, const void *) not "
     "implemented",
     Cause::compiled_out, 0},
    {"invalid Gpu device number. If the number of available Gpus is > 12, add required lines",
     Cause::stale_cache_artifact, 0},
    {"UNAVAILABLE: No PTX compilation provider is available. Neither ptxas/nvlink nor nvjtlink is available.",
     Cause::library_not_found, 0},
    {"nvcc fatal   : Unsupported gpu architecture 'compute_1'", Cause::nvrtc_arch_unsupported, 0},
    {"FLAMEGPU2 has not been built with an appropriate compute capability for device 1.",
     Cause::no_image_for_arch, 0},
    {"nvcc fatal   : Value '[sm_61]' is not defined for option 'gpu-architecture'",
     Cause::nvrtc_arch_unsupported, 0},
    {"java.lang.RuntimeException: Device architecture 61 is unsupported. Minimum supported architecture: 75.",
     Cause::library_refuses, 0},
    {"GPU 1 (NVIDIA A) with CUDA compute capability 12.0 is unsupported by this version of iray photoreal.",
     Cause::library_refuses, 0},
    {"RuntimeError: PassManager::run failed", Cause::library_refuses, 0},
    {"PhysX warning: GPU solver pipeline failed, switching to software, FILE ScScene.cpp, LINE 781", none, 0},
    {"[Error] The currently installed NVIDIA graphics driver is unsupported or has known issues.",
     Cause::driver_too_old, 0},
    {"[Parabricks ExplainRequest Error]: Could not find accessible GPUs.", Cause::no_device, 0},
    {"This version of CUDA.jl only supports NVIDIA drivers for CUDA 11.x or 12.x (yours is for CUDA 13.0.0)",
     Cause::library_refuses, 0},
    {"CUDA error: Insufficient CUDA driver: 9020", Cause::driver_too_old, 35},
    {"RuntimeError: Optix call 'optixModuleCreateFromPTX( optix, &a, &b, data, size )' failed. Log:", none,
     0},
    {"ptx2llvm-module-001, line 2; fatal   : Unsupported .target 'sm_87'", Cause::nvrtc_arch_unsupported, 0},
    {"ValueError: For devices with GPU compute capability 7.x the ENV XLA_FLAGS must include \"--xla_x\".",
     Cause::library_refuses, 0},
    {"| NVIDIA-SMI 545.46    Driver Version: 546.80       CUDA Version: ERR!     |", Cause::driver_mismatch,
     0},
    {"Poll failed: instance group densenet_0 of model densenet specifies invalid or unsupported gpu id 0. "
     "GPUs "
     "with at least the minimum required CUDA compute compatibility of 6.000000 are:",
     Cause::library_refuses, 0},
    {"        License Status                    : Unlicensed (Unrestricted)", Cause::no_device, 0},
    {"CUDA error "
     "(/__w/xformers/xformers/third_party/flash-attention/hopper/flash_fwd_launch_template.h:175): no "
     "kernel image is available for execution on the device",
     Cause::no_image_for_arch, 209},
    {"Couldn't invoke ptxas.exe --version", Cause::library_not_found, 0},
    {"  CMAKE_CUDA_ARCHITECTURES must be valid if set.", none, 0},
    {"CUDA Error CUDA_ERROR_NOT_FOUND: named symbol not found while calling module_get_function",
     Cause::kernel_missing_from_image, 500},
    {"x.h:1:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!",
     Cause::unknown, 0},
    {"static assertion failed: STL1002: Unexpected compiler version, expected CUDA 12.4 or newer.",
     Cause::unknown, 0},
    {"fatal error C1189: #error: -- unsupported Microsoft Visual Studio version!", Cause::unknown, 0},
    {"#error -- unsupported clang version! clang version must be less than 16", Cause::unknown, 0},
    {"nvcc fatal   : Failed to preprocess host compiler properties.", Cause::library_not_found, 0},
    {"m.h(9): error: exception specification is incompatible with that of previous function \"rsqrtf\"",
     Cause::unknown, 0},
    {"m.h(9): error: exception specification is incompatible with that of previous function \"sinpif\"",
     Cause::unknown, 0},
    {"/usr/include/c++/12/type_traits(9): error: parameter pack \"_Args\" was referenced but not expanded",
     Cause::unknown, 0},
    {"k.cu(4): error: identifier \"cudaBindTexture\" is undefined", Cause::unknown, 0},
    {"k.cu(4): error: class \"cudaDeviceProp\" has no member \"clockRate\"", Cause::unknown, 0},
    {"k.cu(4): error: namespace \"thrust\" has no member \"unary_function\"", Cause::unknown, 0},
    {"#error The version of CUB in your include path is not compatible with this release of Thrust.",
     Cause::unknown, 0},
    {"k.cpp:2:10: fatal error: cuda/std/array: No such file or directory", Cause::library_not_found, 0},
    {"k.cpp:2:10: fatal error: cudnn_version.h: No such file or directory", Cause::library_not_found, 0},
    {"k.cpp:2:10: fatal error: nccl.h: No such file or directory", Cause::library_not_found, 0},
    {"k.cpp:2:10: fatal error: NvInfer.h: No such file or directory", Cause::library_not_found, 0},
    {"NVRM: Xid (PCI:0000:01:00): 171, pid=9, name=a", none, 0},
    {"ptxas fatal   : Unresolved extern function '__nv_fast_log2f'", none, 0},
    {"jax_plugins.xla_cuda12 plugin version 0.5.3 is installed, but it is not compatible with the installed "
     "jaxlib version 0.6.2, so",
     none, 0},
    {"RuntimeError: Failed to find CUDA headers. Please install CUDA Toolkit, or pip install "
     "\"cupy-cuda12x[ctk]\"",
     Cause::library_not_found, 0},
    {"/var/lib/dkms/nvidia/470.42/build/nvidia/nv-acpi.c:84:12: error: unknown type name 'acpi_op'",
     Cause::no_device, 0},
    {"MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/x/pool_memory_resource.hpp:196",
     Cause::out_of_memory, 2},
    {"k.cpp:2:10: fatal error: nvcuvid.h: No such file or directory", Cause::library_not_found, 0},
    {"k.cpp:2:10: fatal error: cusparseLt.h: No such file or directory", Cause::library_not_found, 0},
    {"ERROR: nvenc requested, but not all dependencies are satisfied: ffnvcodec", Cause::library_not_found,
     0},
    {"[h264_nvenc @ 0x5] OpenEncodeSessionEx failed: unsupported device (2)", none, 0},
    {"k.cu:2:10: fatal error: cute/tensor.hpp: No such file or directory", Cause::library_not_found, 0},
    {"k.cu:2:10: fatal error: helper_math.h: No such file or directory", Cause::library_not_found, 0},
    {"k.cu:2:10: fatal error: THC/THCAtomics.cuh: No such file or directory", Cause::library_not_found, 0},
    {"k.cu:2:10: fatal error: cublas_v2.h: No such file or directory", Cause::library_not_found, 0},
    {"k.cu:2:10: fatal error: mma.h: No such file or directory", Cause::library_not_found, 0},
    {"  Failed to find nvToolsExt", Cause::library_not_found, 0},
    {"nvlink fatal   : Input file 'a.o' newer than toolkit (128 vs 120)", Cause::mixed_cuda_libraries, 0},
    {"  No CUDA toolset found.", Cause::library_not_found, 0},
    {"Unsupported cuda toolkit version: `13.9`. Please raise a github issue.", Cause::unknown, 0},
    {"error[E0412]: cannot find type `CUctxCreateParams` in module `sys`", Cause::unknown, 0},
    {"a.o: undefined reference to `cublasLtX@libcublasLt.so.12'", Cause::mixed_cuda_libraries, 0},
    {"ld: warning: libcuda.so.1, needed by libx.so, not found (try using -rpath)", Cause::library_not_found,
     0},
    {"a.o: undefined reference to `cuLaunchKernel'", Cause::library_not_found, 0},
    {"nvlink error   : Undefined reference to '_Z1fv' in 'a.o'", Cause::unknown, 0},
    {"a.o: error LNK2019: unresolved external symbol cudaMalloc referenced in main", Cause::library_not_found,
     0},
    {"a.o: undefined reference to `cusolverDnCreate'", Cause::library_not_found, 0},
    {"/usr/bin/ld: cannot find -lcudart_static: No such file", Cause::library_not_found, 0},
    {"Unable to dynamically load the \"curand\" shared library - searched for library names: "
     "[\"curand.dll\"]",
     Cause::library_not_found, 0},
    {"E tensorflow/cuda_driver.cc:1] failed call to cuInit: UNKNOWN ERROR (303)", Cause::no_device, 303},
    {"k.cu(12): error: no instance of constructor \"Grid::Grid\" matches the argument list", Cause::unknown,
     0},
    {"            operand types are: __half * float", Cause::unknown, 0},
    {"k.cpp:9:3: error: 'THCState' was not declared in this scope", Cause::unknown, 0},
    {"  Could NOT find CUDNN (missing: CUDNN_INCLUDE_DIR)", Cause::library_not_found, 0},
    {"  By not providing \"FindCUDAToolkit.cmake\" in CMAKE_MODULE_PATH", Cause::library_not_found, 0},
    {"  Unknown CMake command \"cuda_add_executable\".", Cause::library_not_found, 0},
    {"    CUDA::cufft", Cause::library_not_found, 0},
    {"Error: libcurand.so: cannot open shared object file", Cause::library_not_found, 0},
    {"/usr/bin/ld: cannot find -lcudnn", Cause::library_not_found, 0},
    {"float8.h:83:10: fatal error: cuda_fp8.h: No such file or directory", Cause::library_not_found, 0},
    {"helpers.h(448): error: identifier \"cudaCGGetIntrinsicHandle\" is undefined",
     Cause::mixed_cuda_libraries, 0},
    {"ptxas error   : Entry function '_Z4gemmPf' uses too much shared data (0x18000 bytes, 0xc000 max)",
     Cause::launch_resources, 0},
    {"ptxas-blackwell fatal: Value 'sm_110a' is not defined for option 'gpu-name'",
     Cause::nvrtc_arch_unsupported, 0},
    {"Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.", none, 0},
    {"NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 00000001 caused by previous Xid 149", none, 0},
    {"C++ exception with description \"Unknown device in cuda warp per sm allocation granularity\" thrown",
     Cause::library_refuses, 0},
    {"ImportError: libcublas.so.12: cannot open shared object file: No such file or directory",
     Cause::library_not_found, 0},
    {"libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory",
     Cause::library_not_found, 0},
    {"ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be "
     "stored "
     "in KV cache (27984).",
     Cause::out_of_memory, 0},
    {"[h264_nvenc @ 0x5] OpenEncodeSessionEx failed: out of memory (10): (no details)", none, 0},
    {"NVRM: installed in this system is not supported by the NVIDIA 595.45.04 driver release.",
     Cause::no_device, 0},
    {"NVRM: installed in this system requires use of the NVIDIA open kernel modules.", Cause::no_device, 0},
    {"NVRM: GPU 0000:01:00.0 is already bound to nouveau.", Cause::no_device, 0},
    {"modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", Cause::no_device, 0},
    {"modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.11.0-21-generic", Cause::no_device,
     0},
    {"NVRM: Xid (PCI:0000:01:00): 31, pid=4411, name=python3, MMU Fault", Cause::device_fault, 0},
    {"NVRM: Xid (PCI:0000:01:00): 48, pid='<unknown>', DBE", none, 0},
    {"NVRM: GPU 0000:0a:00.0: RmInitAdapter failed! (0x24:0x72:1568)", Cause::no_device, 0},
    {"cuda driver library init failure: 500", Cause::driver_mismatch, 500},
    {"CUDA error: frobnication of the warp scheduler failed", none, 0},
    {"node1:1:1 [0] transport/nvls.cc:245 NCCL WARN Cuda failure 1 'invalid argument'", none, 1},
    {"NVRM: nvidia.ko because it does not include the required GPU System Processor (GSP).", Cause::no_device,
     0},
    {"No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda-11.8'", Cause::no_device, 0},
    {"Detected non-NVML platform: could not load NVML library", Cause::no_device, 0},
    {"CUDA cuInit: Failed to load library libcuda.so", Cause::no_device, 0},
    {"[h264_nvenc @ 0x55] Driver does not support the required nvenc API version. Required: 13.0 Found: 12.1",
     Cause::driver_too_old, 0},
    {"CUDA_VISIBLE_DEVICES=MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0", Cause::no_device, 0},
    {"| No MIG devices found |", Cause::no_device, 0},
    {"ModuleNotFoundError: No module named 'tinycudann_bindings._89_C'", Cause::no_image_for_arch, 0},
    {"OSError: Unknown compute capability. Could not find a suitable tiny-cuda-nn binding",
     Cause::no_image_for_arch, 0},
    {"ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!", none, 0},
    {"a device of compute capability (7, 5), the minimum compute capability is (8, 0) for this kernel",
     Cause::library_refuses, 0},
    {"device (0) is of insufficient compute capability: 3.5 required, device is 3.0", Cause::library_refuses,
     0},
    {"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", none, 0},
    {"NVIDIA_VISIBLE_DEVICES=void", Cause::no_device, 0},
    {"SLURM_JOB_GPUS=", Cause::no_device, 0},
    {"RuntimeError: Torch is not able to use GPU; add --skip-torch-cuda-test", Cause::no_device, 0},
    {"CuTensorError: CUTENSOR_STATUS_ARCH_MISMATCH", Cause::library_refuses, 0},
    {"XlaRuntimeError: INTERNAL: ptxas 12.4 does not support CC 10.0", Cause::nvrtc_arch_unsupported, 0},
    {"DeepSpeed: CUDA_HOME does not exist, unable to compile CUDA op(s)", Cause::library_not_found, 0},
    {"numba.cuda.cudadrv.driver.CudaAPIError: [209] Call to cuModuleLoadDataEx results in "
     "CUDA_ERROR_NO_BINARY_FOR_GPU",
     Cause::no_image_for_arch, 209},
    {"[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     Cause::ptx_newer_than_driver, 222},
    {"pycuda._driver.LogicError: cuModuleLoadDataEx failed: device kernel image is invalid -", none, 200},
    {"ERROR: CUDA error: a PTX JIT compilation failed (code 218, ERROR_INVALID_PTX)", Cause::invalid_image,
     218},
    {"Check failed: error == cudaSuccess (48 vs. 0)  no kernel image is available for execution on the "
     "device",
     Cause::no_image_for_arch, 209},
    {"Check failed: error == cudaSuccess (8 vs. 0)  invalid device function", Cause::no_image_for_arch, 98},
    {"what():  parallel_for failed: cudaErrorNoKernelImageForDevice: no kernel image is available",
     Cause::no_image_for_arch, 209},
    {"CUDA driver version is insufficient for CUDA runtime version", Cause::driver_too_old, 35},
    {"ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", Cause::nvrtc_arch_unsupported, 0},
    {"nvcc fatal : Unsupported gpu architecture 'compute 86'", Cause::nvrtc_arch_unsupported, 0},
    {"FullyFusedMLP is not supported for the selected architecture 61. Falling back to CutlassMLP.",
     Cause::benign_probe, 0},
    {"buildTileLists, maximum shared memory allocation exceeded. Too many atoms in a patch",
     Cause::launch_resources, 0},
    {"In function cuda::Kernel cuda::buildKernel(int, const string&)", Cause::invalid_image, 0},
    {"our Hopper kernels do not start on a Blackwell card", Cause::compiled_out, 0},
    {"invalid resource handle in a process with two GPUs", Cause::context_mismatch, 400},
    {"nvcc fatal   : Unsupported gpu architecture 'compute_86'", Cause::nvrtc_arch_unsupported, 0},
    {"nvrtc: error: invalid value for --gpu-architecture (-arch)", Cause::nvrtc_arch_unsupported, 0},
    {"ptxas application ptx input, line 5; fatal   : Unsupported .version 8.8; current version is '8.2'",
     Cause::ptx_newer_than_driver, 222},
    {"Program with .target 'sm_90a' cannot be compiled to future architecture", Cause::arch_specific_image,
     218},
    {"SM version specified by .target is higher than default SM version assumed",
     Cause::ptx_newer_than_device, 218},
    {"[TRT] [E] 6: [convBaseRunner.cpp::execute] Error Code 6: Target GPU SM 61 is not supported by this "
     "TensorRT release.",
     Cause::library_refuses, 0},
    {"OpenCV(4.5.1) error: (-217:Gpu API call) no kernel image is available for execution on the device in "
     "function 'call'",
     Cause::no_image_for_arch, 209},
    {"Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open "
     "shared object "
     "file: No such file or directory",
     Cause::library_not_found, 0},
    {"OSError: libcudnn.so.8: cannot open shared object file: No such file or directory",
     Cause::library_not_found, 0},
    {"ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", Cause::no_device,
     0},
    {"Unable to load library libnvidia-ptxjitcompiler.so.367.44", Cause::jit_compiler_missing, 221},
    {"RuntimeError: CUDA error: an illegal memory access was encountered", Cause::device_fault, 700},
    {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", Cause::out_of_memory, 2},
    {"RuntimeError: CUDA error: invalid configuration argument", Cause::launch_resources, 9},
    {"RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found (8, 9, "
     "2).",
     Cause::cudnn_mismatch, 0},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling cublasGemmEx",
     Cause::library_refuses, 0},
    {"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver",
     Cause::driver_too_old, 0},
    {"could not select device driver \"\" with capabilities: [[gpu]].", Cause::no_device, 0},
    {"Failed to initialize NVML: Driver/library version mismatch", Cause::driver_mismatch, 0},
    {"nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
     Cause::driver_mismatch, 0},
    {"reason=outdated_driver", Cause::driver_too_old, 0},
    {"failed to allocate 5453 bytes of MEM_TYPE_PINNED: CUDA error 1: invalid argument", Cause::out_of_memory,
     2},
    {"plotter: failed to create CUDA context", Cause::unknown, 0},
    {"OPTIX_ERROR_LAUNCH_FAILURE in optixLaunch", Cause::device_fault, 719},
    {"OPTIX_ERROR_ENTRY_SYMBOL_NOT_FOUND in optixInit", Cause::driver_too_old, 0},
    {"Tesla M60: required compute capability: 6.1", Cause::library_refuses, 0},
    {"The NVIDIA driver on your system is too old (found version 11040).", Cause::driver_too_old, 35},
    {"RuntimeError: Cannot re-initialize CUDA in forked subprocess.", Cause::fork_after_init, 3},
    {"Triton only supports devices of CUDA Capability >= 7.0, but your device is of CUDA capability 6.0",
     Cause::library_refuses, 0},
    {"RuntimeError: FlashAttention only supports Ampere GPUs or newer.", Cause::library_refuses, 0},
    {"FATAL: kernel `fmha_cutlassF_f16_sm80` is for sm80-sm90, but was built for sm70", Cause::compiled_out,
     0},
    {"Attempting to use wgmma.fence without CUTE_ARCH_MMA_SM90A_ENABLED", Cause::compiled_out, 0},
    {"nvrtc: error: failed to load builtins", Cause::library_not_found, 0},
    {"RuntimeError: Cuda error: k_copy: invalid device function.", Cause::stale_cache_artifact, 98},
    {"add.cu:31: void verify(int*): Assertion `c[i] == a[i] + b[i]' failed.", Cause::unchecked_failure, 0},
    {"CUDA kernel mul_mat_q has no device code compatible with CUDA arch 520. ggml-cuda.cu was compiled for: "
     "520",
     Cause::compiled_out, 0},
    {"ImportError: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
     Cause::mixed_cuda_libraries, 0},
    {"Error 804: forward compatibility was attempted on non supported HW", Cause::driver_mismatch, 804},
    {"RuntimeError: CUDA error: device-side assert triggered", Cause::device_fault, 710},
    {"NCCL error: unhandled cuda error", none, 0},
    {"ncclUnhandledCudaError: Call to CUDA function failed.", none, 0},
    {"UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up "
     "environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
     none, 999},
    {"ptxas x.ptx, line 1422; error   : Feature '.bf16' requires .target sm_80 or higher", none, 0},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling cublasGemmEx",
     Cause::library_refuses, 0},
    {"Failed to initialize NVML: Unknown Error", Cause::no_device, 0},
    {"CUSOLVER_STATUS_ARCH_MISMATCH", Cause::library_refuses, 0},
    {"cusparse error: CUSPARSE_STATUS_ARCH_MISMATCH", Cause::library_refuses, 0},
    {"libNVVM cannot be found. Do `conda install cudatoolkit`", Cause::library_not_found, 0},
    {"triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware "
     "limit: 101376.",
     Cause::launch_resources, 0},
    // What libraries and builds say of architectures in their own words.
    {"Minimum capability: 70. Current capability: 52.", Cause::library_refuses, 0},
    {"('Quantization scheme is not supported for ', 'the current GPU. Min capability: 80. ', 'Current "
     "capability: 75.')",
     Cause::library_refuses, 0},
    {"Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has "
     "compute capability 7.5.",
     Cause::library_refuses, 0},
    {"FP8 models require a GPU with Compute Capability 8.9 or higher. Your GPU's capability is 8.6.",
     Cause::library_refuses, 0},
    {"error: compute capability 7.0 or higher is asked for, and the device has 6.1", Cause::library_refuses,
     0},
    {"RuntimeError: this GPU (sm_120) is too new", Cause::library_refuses, 0},
    {"The GPU has compute capability 3.5 but 5.0 or higher is required", Cause::library_refuses, 0},
    {"requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
     Cause::library_refuses, 0},
    {"NotImplementedError: the kernel requires a GPU with compute capability 10.0 or later",
     Cause::library_refuses, 0},
    {"marlin_gemm requires CUDA_ARCH >= 8.0", Cause::library_refuses, 0},
    {"UnsupportedCUDAError: A GPU with NVIDIA Volta (Compute Capability 7.0) or newer architecture is "
     "required.",
     Cause::library_refuses, 0},
    {"RuntimeError: GPUs with compute capability below 7.0 are not supported.", Cause::library_refuses, 0},
    {"CUDA GPU is too old. Compute Capability detected: 3.7", Cause::library_refuses, 0},
    {"RuntimeError: FlashMLA is only supported on Hopper and Blackwell devices", Cause::library_refuses, 0},
    {"RuntimeError: Assertion error (deep_gemm/x.hpp:56): Unsupported architecture", Cause::library_refuses,
     0},
    {"triton: target sm_70 is not supported", Cause::library_refuses, 0},
    {"This GPU does not support grid synchronization", Cause::library_refuses, 0},
    {"cudnnGraphNotSupportedError: No execution plans support the graph.", Cause::library_refuses, 0},
    {"cublas_gemm: cuBLAS Error: the requested functionality is not supported", Cause::library_refuses, 0},
    {"Mismatched GPU Architecture: the package was compiled for 75 80 86 89 ,but your current GPU is 120",
     Cause::no_image_for_arch, 209},
    {"Error application compiled for CUDA Compute Capability 35 and above. Device 0 is compute capability "
     "30.",
     Cause::no_image_for_arch, 209},
    {"skipping CUDA device - compute capability not in compiled architectures device=P4000 cc=610",
     Cause::no_image_for_arch, 0},
    {"ERROR: GPU library not compiled for this accelerator (../gpu_extra.h:40)", Cause::no_image_for_arch, 0},
    {"this binary was not built with support for compute capability 6.1", Cause::no_image_for_arch, 0},
    {"No compiled cutlass_scaled_mm for CUDA device capability: 120", Cause::no_image_for_arch, 0},
    {"This cuDF installation is missing the necessary PTX files that are <=50.", Cause::no_image_for_arch, 0},
    {"compute cap.: 8.9, ECC:  no, stat: incompatible", Cause::no_image_for_arch, 0},
    {"Detected NVIDIA GeForce RTX 5090 GPU, which is not yet supported in this version of the container",
     Cause::no_image_for_arch, 0},
    {"Could not run '_C::op' with arguments from the 'CUDA' backend.", Cause::no_image_for_arch, 0},
    {"1. Architecture-specific pattern: /x/sm75/common_ops.* - found files: []", Cause::no_image_for_arch, 0},
    {"CUDA_ARCHITECTURES is set to \"native\", but no GPU was detected.", Cause::no_device, 0},
    {"nvcc fatal   : Unsupported gpu architecture 'compute_'", Cause::nvrtc_arch_unsupported, 0},
    {"CUDA_ARCHITECTURES is empty for target \"filter\".", none, 0},
    {"    arch_list[-1] += '+PTX'", Cause::no_device, 0},
    {"OSError: CUDA_HOME environment variable is not set.", Cause::library_not_found, 0},
    {"unknown or invalid runtime name: nvidia", Cause::no_device, 0},
    {"nvidia-container-cli: initialization error: nvml error: driver not loaded", Cause::no_device, 0},
    {"nvidia-container-cli: mount error: file creation failed: /x/libcuda.so.1: file exists",
     Cause::driver_mismatch, 0},
    {"This container was built for NVIDIA Driver Release 570.86 or later, but version 535.183.01 was "
     "detected",
     Cause::driver_too_old, 0},
    {"The NVIDIA Driver was not detected.  GPU functionality will not be available.", Cause::no_device, 0},
    {"0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", Cause::no_device, 0},
    {"RuntimeError: Failed to infer device type", Cause::no_device, 0},
    {"OptiX initialization failed: OPTIX_ERROR_UNSUPPORTED_ABI_VERSION", Cause::driver_too_old, 0},
    {"UNIMPLEMENTED: ptxas ptxas too old. Falling back", Cause::nvrtc_arch_unsupported, 0},
    {"INTERNAL: XLA requires ptxas version 11.8 or higher", Cause::nvrtc_arch_unsupported, 0},
    {"Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file",
     Cause::library_not_found, 0},
    {"No compiled cutlass_scaled_mm for CUDA device capability: 120. Required capability: 90 or 100",
     Cause::no_image_for_arch, 0},
    {"RuntimeError: FlashAttention-3 only supports Hopper GPUs or newer.", Cause::library_refuses, 0},
    {"CUDA error (/w/flash-attention/hopper/flash_fwd_launch_template.h:166): no kernel image is available",
     Cause::no_image_for_arch, 209},
    {"OSError: libtorch_cuda.so: cannot open shared object file", Cause::library_not_found, 0},
    {"Unexpected error from cudaGetDeviceCount(). Error 500: named symbol not found", Cause::driver_mismatch,
     500},
    {"XlaRuntimeError: INTERNAL: ptxas /tmp/a, line 5; fatal   : Unsupported .target 'sm_120a';",
     Cause::nvrtc_arch_unsupported, 0},
    {"cudf.errors.UnsupportedCUDAError: A GPU with NVIDIA Volta (Compute Capability 7.0) is required.",
     Cause::library_refuses, 0},
    {"RuntimeError: Assertion error (/w/DeepGEMM/csrc/jit/device_runtime.hpp:56): Unknown SM arch",
     Cause::library_refuses, 0},
    {"RuntimeError: FlashInfer requires GPUs with sm75 or higher", Cause::library_refuses, 0},
    {"NvvmSupportError: GPU compute capability 3.7 is not supported", Cause::library_refuses, 0},
    {"CCSupportError: GPU compute capability 6.1 is not supported(requires >=7.5)", Cause::library_refuses,
     0},
    {"RuntimeError: CUDA 13.4 requires sm_75 or higher, but sm_61 (device cuda:0) was specified.",
     Cause::library_refuses, 0},
    {"[201] Call to cuCtxGetDevice results in CUDA_ERROR_INVALID_CONTEXT", Cause::context_mismatch, 201},
    {"    PyTorch 2.10.0+cu128 with CUDA 1208 (you have 2.15.0+cu132)", Cause::mixed_cuda_libraries, 0},
    {"CUDA kernel flash_attn_ext_f16 has no device code compatible with CUDA arch 700.", Cause::compiled_out,
     0},
    {"PTX version 8.8 does not support target 'sm_107a'.", Cause::nvrtc_arch_unsupported, 0},
    {"Device capability v2.1.0 not supported by available toolchain", Cause::nvrtc_arch_unsupported, 0},
    {"Assertion failed: SM version not supported in this NVRTC version", Cause::nvrtc_arch_unsupported, 0},
    {"NvvmSupportError: No supported GPU compute capabilities found.", Cause::nvrtc_arch_unsupported, 0},
    {"ptxas /tmp/a.ptx, line 5; fatal   : Unsupported .version 8.4; current version is '8.2'",
     Cause::nvrtc_arch_unsupported, 0},
    {"ptxas a.ptx, line 1; error   : Instruction 'wgmma.fence' not supported on .target 'sm_120'",
     Cause::arch_specific_image, 0},
    {"WARNING: running kernels compiled for compute capability 10.0 on device with compute capability 12.0 , "
     "this will likely reduce potential performance.",
     Cause::jit_tax, 0},
    {"LoadLibrary failed with error 126 \"\" when trying to load onnxruntime_providers_cuda.dll",
     Cause::library_not_found, 0},
    {"Unable to load cuSPARSE. Is it installed?", Cause::library_not_found, 0},
    {"Configured CUDA binary not found at /x/libbitsandbytes_cuda130.so", Cause::library_not_found, 0},
    {"tf_gpu_runtime_wrappers.cc:40] 'cuModuleLoadData(&module, data)' failed with "
     "'CUDA_ERROR_INVALID_PTX'",
     Cause::invalid_image, 218},
    {"PTX JIT compiler library not found", Cause::jit_compiler_missing, 221},
    {"error: invalid or no value specified with --nv_arch flag", Cause::nvrtc_arch_unsupported, 0},
    {"nvrtc: error: failed to open nvrtc-builtins64_128.dll.", Cause::library_not_found, 0},
    {"nvcc fatal   : Value 'sm_75' is not defined for option 'gpu-architecture'",
     Cause::nvrtc_arch_unsupported, 0},
    {"error: Unsupported .target 'sm_120'", Cause::nvrtc_arch_unsupported, 0},
    {"PTX version mismatch", Cause::ptx_newer_than_driver, 222},
    {"'sm_120' is not a recognized processor for this target (ignoring processor)",
     Cause::nvrtc_arch_unsupported, 0},
    {"nvJitLinkCreate failed: NVJITLINK_ERROR_UNRECOGNIZED_ARCH", Cause::nvrtc_arch_unsupported, 0},
    {"libnvvm: error: unsupported arch compute_120", Cause::nvrtc_arch_unsupported, 0},
    {"cuda.bindings.nvvm.nvvmError: ERROR_INVALID_OPTION (7)", Cause::nvrtc_arch_unsupported, 0},
    {"RuntimeError: cutensorCreate failed: CUTENSOR_STATUS_NOT_SUPPORTED", Cause::library_refuses, 0},
    {"nvlink fatal   : SM Arch ('sm_90') not found in 'a.o'", Cause::no_image_for_arch, 0},
    {"ptxas a.ptx, line 12; fatal   : Parsing error near '.b': syntax error", Cause::invalid_image, 218},
    {"ValueError: type fp8e4nv not supported in this architecture.", Cause::library_refuses, 0},
    {"The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch (12.4).", none,
     0},
    {"PyTorch no longer supports this GPU because it is too old.", Cause::no_image_for_arch, 0},
    {"GPU0 requires CUDA_VERSION >= 8000 to work properly, but your PyTorch was compiled with CUDA_VERSION "
     "7050.",
     Cause::no_image_for_arch, 0},
    {"Support for Maxwell and Pascal architectures is removed for CUDA 12.8+ builds.",
     Cause::no_image_for_arch, 0},
    {"RuntimeError: No CUDA GPUs are available", Cause::no_device, 100},
    {"RuntimeError: Found no NVIDIA driver on your system.", Cause::no_device, 0},
    {"Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed",
     Cause::library_not_found, 0},
    {"CUDA runtime implicit initialization on GPU:0 failed. Status: device kernel image is invalid",
     Cause::no_image_for_arch, 200},
    {"Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.", Cause::cudnn_mismatch, 0},
    {"kernel version 535.54.3 does not match DSO version 550.54.14", Cause::driver_mismatch, 0},
    {"kernel driver does not appear to be running on this host", Cause::no_device, 0},
    {"INTERNAL: Failed call: error before calling cuModuleGetFunction (209)", Cause::no_image_for_arch, 209},
    {"libdevice not found at ./libdevice.10.bc", Cause::library_not_found, 0},
    {"cublasLt64_12.dll was not found", Cause::library_not_found, 0},
    {"Could not load library cudnn_ops_infer64_8.dll. Error code 126", Cause::library_not_found, 0},
    {"invalid value for --gpu-architecture (-arch)", Cause::nvrtc_arch_unsupported, 0},
    {"Could not locate cudnn_graph64_9.dll. Please make sure it is in your library path!",
     Cause::library_not_found, 0},
    {"ImportError: CuPy failed to load libnvrtc.so.12", Cause::library_not_found, 0},
    {"RuntimeError: CUDA Setup failed despite GPU being available.", Cause::library_not_found, 0},
    {"CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED", Cause::cudnn_mismatch, 0},
    {"cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", none, 0},
    {"CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm", none, 0},
    {"[TRT] [E] 1: Unsupported SM: 0x601", Cause::library_refuses, 0},
    {"The engine plan file is not compatible with this version of TensorRT, expecting library version 8.6.1",
     Cause::stale_cache_artifact, 0},
    {"CUDA backend for DNN module requires CC 5.3 or higher.", Cause::library_refuses, 0},
    {"OpenCV was not built to work with the selected device. Please check CUDA_ARCH_PTX or CUDA_ARCH_BIN",
     Cause::no_image_for_arch, 209},
    {"Could not find compatible tinycudann extension for compute capability 86.", Cause::no_image_for_arch,
     209},
    {"Multiple GPU architectures given! Already have VOLTA70, but trying to add AMPERE80",
     Cause::no_image_for_arch, 0},
    {"RuntimeError: cutlass cannot run, Error Internal", Cause::compiled_out, 0},
    {"compute capability 6.1 of this device are not supported", Cause::library_refuses, 0},
    {"no suitable binary was found for sm_86", Cause::no_image_for_arch, 0},
    {"CUDA error 1 (no kernel)", Cause::no_image_for_arch, 209},
    {"========= Host Frame:ncclInitKernelsForDevice [0x1] in libnccl.so.2", Cause::benign_probe, 0},
    {"the kernel returns zeros on this GPU", Cause::unchecked_failure, 0},
    {"a stale error that cudaGetLastError returns", Cause::stale_error, 0},
    {"cuDNN error: CUDNN_STATUS_ARCH_MISMATCH", Cause::cudnn_mismatch, 0},
    {"Arch conditional MMA instruction used without targeting appropriate compute capability. Aborting.",
     Cause::compiled_out, 0},
    {"f.cu:90: f: block: [60,0,0], thread: [32,0,0] Assertion `i < n` failed.", Cause::device_fault, 710},
    {"common.cuh:112: ggml was not compiled with any CUDA arch <= 750", Cause::library_refuses, 0},
    {"running kernels compiled for compute capability 8.0 on device with compute capability 7.0, these are "
     "not supported by CUDA!",
     Cause::no_image_for_arch, 209},
    {"NVRTCError: NVRTC_ERROR_INVALID_OPTION (5)", Cause::nvrtc_arch_unsupported, 0},
    {"The GPU compute capability in your current machine is 120, which is not supported by Paddle",
     Cause::no_image_for_arch, 209},
    {"slow start-up: 12 minutes", Cause::jit_tax, 0},
    {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", Cause::no_device, 0},
    {"Could not load dynamic library 'libcudnn.so.8'; dlerror: no such file", Cause::library_not_found, 0},
    {"Ignoring visible gpu device (device: 0, compute capability: 3.0) with Cuda compute capability 3.0. The "
     "minimum required Cuda capability is 3.5.",
     Cause::library_refuses, 0},
    {"TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0.",
     Cause::jit_tax, 0},
    {"ValueError: Unknown CUDA arch (10.1) or GPU not supported", Cause::nvrtc_arch_unsupported, 0},
    {"NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch "
     "installation.",
     Cause::no_image_for_arch, 0},
    {"Minimum and Maximum cuda capability supported by this version of PyTorch is (7.5) - (12.0)",
     Cause::no_image_for_arch, 0},
    {"triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error", none, 0},
    {"The engine plan file is generated on an incompatible device, expecting compute 8.9 got compute 8.6",
     Cause::stale_cache_artifact, 0},
    {"ptxas does not support CC 12.0", Cause::nvrtc_arch_unsupported, 0},
    {"cuda failure 46", none, 46},
    {"#209", Cause::no_image_for_arch, 209},
    {"error code 209", Cause::no_image_for_arch, 209},
    {"tileiras: for the --gpu-name option: Cannot find option named 'sm_75'!", Cause::nvrtc_arch_unsupported,
     0},
    {"cannot target CUDA device 0: it is sm_75, and this tileiras supports only sm_80 and newer",
     Cause::nvrtc_arch_unsupported, 0},
    {"cuda.tile._exception.TileCompilerExecutionError: the compiler ended with 1",
     Cause::nvrtc_arch_unsupported, 0},
    {"clang: error: unsupported CUDA gpu architecture: sm_121", Cause::nvrtc_arch_unsupported, 0},
    {"clang: error: GPU arch sm_121 is supported by CUDA versions between 12.9 and 13.0 (inclusive), but "
     "installation at /opt/cuda is 12.4",
     Cause::nvrtc_arch_unsupported, 0},
    {"nvc++-Error-Switch -gpu with unknown keyword cc120", Cause::nvrtc_arch_unsupported, 0},
    {"triton.runtime.errors: `ptxas` failed with error code 255", none, 0},
    {"AssertionError: libcuda.so cannot found!", Cause::library_not_found, 0},
    {"ImportError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short", Cause::driver_mismatch, 0},
    {"RuntimeError: CUDA error: the library was not initialized", none, 0},
    {"/src/ggml-cuda/fattn.cu:110: fatal error", none, 0},
    {"ValueError: the kernel expects arch sm_90, got sm_120", Cause::library_refuses, 0},
    {"Unsupported target for the dsl: -arch=sm_75", Cause::library_refuses, 0},
    {"ValueError: attention sinks are only supported with FlashAttention 3", Cause::library_refuses, 0},
    {"RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.", Cause::library_refuses, 0},
    {"Rebuild this file with -gpu=cc61 to use this GPU", Cause::no_image_for_arch, 0},
    {"ERROR : This kernel only supports sm100a.", Cause::compiled_out, 0},
    {"could not select device: unresolvable CDI devices nvidia.com/gpu=all", Cause::no_device, 0},
    {"exec: \"nvidia-smi\": executable file not found in $PATH", Cause::no_device, 0},
    {"requirement error: unsatisfied condition: arch>=8.0", Cause::library_refuses, 0},
    {"WARNING: Could not find any nv files on this host!", Cause::no_device, 0},
    {"Warp CUDA error: Failed to get driver entry point 'cuDeviceGetUuid'", none, 0},
    {"Unable to determine the device handle for GPU0: 0000:01:00.0: Unknown Error", Cause::no_device, 0},
    {"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", Cause::no_device, 0},
    {"Unknown CUDA Architecture Name 12.0 in CUDA_SELECT_NVCC_ARCH_FLAGS", Cause::nvrtc_arch_unsupported, 0},
    {"-- Not building NVFP4 as no compatible archs were found in CUDA's list.", Cause::no_image_for_arch, 0},
    {"f.h(3): error: static assertion failed with \"compute capability 8.0 at least\"",
     Cause::library_refuses, 0},
    {"f.cu(92): error: identifier \"__hmax_nan\" is undefined", none, 0},
    {"CalledProcessError: Command '['/t/ptxas', '--gpu-name=sm_103a', 'a.ptx']' returned non-zero exit "
     "status 255.",
     Cause::nvrtc_arch_unsupported, 0},
    {"cuBLAS error 8 at ggml-cuda.cu:1500", Cause::library_refuses, 0},
    {"ValueError: Unsupported CUDA architecture: sm87", Cause::library_refuses, 0},
    {"RuntimeError: No supported CUDA architectures found for major versions [10].", Cause::library_refuses,
     0},
    {"the node could not determine CUDA architecture", none, 0},
    {"FileNotFoundError: [Errno 2] No such file or directory: '/opt/k/gemm_sm90.cubin'",
     Cause::no_image_for_arch, 0},
    {"No kernel found for arch sm_121", Cause::no_image_for_arch, 0},
    {"open /dev/nvidia-uvm: no such file or directory", Cause::no_device, 0},
    {"Runtime compute cap 120 is not compatible with compile time compute cap 90", Cause::no_image_for_arch,
     0},
    {"    xFormers wasn't build with CUDA support", Cause::library_not_found, 0},
    {"OSError: a.so: undefined symbol: cuTensorMapEncodeIm2col", Cause::driver_too_old, 0},
    {"Triton only support CUDA 10.0 or higher, but got CUDA version: 12.8", none, 0},
    {"RuntimeError: [GEMM Dispatch] Arch unsupported for CUTLASS FP4 GEMM", Cause::library_refuses, 0},
    {"ValueError: compute capability 12.0 is not supported by NVRTC 12.4", Cause::nvrtc_arch_unsupported, 0},
    {"configure: CUDA version 10.2 is too low for detected architecture 89", Cause::nvrtc_arch_unsupported,
     0},
    {"CUDA version 13.0 no longer supports detected architecture 61", Cause::nvrtc_arch_unsupported, 0},
    {"PTX ISA 8.7 is not supported by LLVM 15", Cause::nvrtc_arch_unsupported, 0},
    {"grouped_gemm requires CUDA version >= 12.3", none, 0},
    {"fp4_cast requires SM 10.x, and CUDA 12.8+.", none, 0},
    {"This operator is not supported by the current CUDA version.", none, 0},
    {"Error: CUDA version mismatch: ops were compiled with another one", none, 0},
    {"Cooperative loads need a newer CUDA. Please install driver version 570 or newer.",
     Cause::driver_too_old, 0},
    {"viewer requires NVIDIA driver 525.60 or higher", Cause::driver_too_old, 0},
    {"CUDA error: Driver too old. Minimum version required is 12.2", Cause::driver_too_old, 0},
    {"The compute capability of the current device(3.5) lower than the minimum compute version",
     Cause::library_refuses, 0},
    {"Insufficient compute capability 52 detected.", Cause::library_refuses, 0},
    {"the solver requires one or more GPUs of Pascal(SM 6.0) or higher", Cause::library_refuses, 0},
    {"cluster_copy is only supported on SM 9.0+.", Cause::library_refuses, 0},
    {"sparse_mm: Supported only on GPUs with compute capability 8.x", Cause::library_refuses, 0},
    {"Only Ampere (8.x), Hopper (9.x) and Blackwell (10.x) are supported", Cause::library_refuses, 0},
    {"awq_mm does not support for cuda arch < 7.5", Cause::library_refuses, 0},
    {"The compute capability of the current device(12.0) exceeds maximum supported by this runtime(9.0)",
     Cause::no_image_for_arch, 0},
    {"WARNING: The binary does not include support for the CUDA architecture of GPU 0",
     Cause::no_image_for_arch, 0},
    {"ERROR: CUDA kernel mul_mat has no device code for arch 610.", Cause::no_image_for_arch, 0},
    {"The fused layer was not compiled due to insufficient GPU arch", Cause::no_image_for_arch, 0},
    {"No CUDA binaries here for 12.0. This may lead to expensive JIT compile on startup.", Cause::jit_tax, 0},
    {"device 1: please rebuild with -arch set, the right one being sm_61", Cause::no_image_for_arch, 0},
    {"No CUDA architecture was specified or GPU detected.", none, 0},
    {"PKG_CUDA_ARCHS=native requires nvidia-smi to resolve the host arch.", none, 0},
    {"RuntimeError: cublas runtime error : the GPU program failed to execute at THCBlas.cu:9", none, 0},
    {"Each first session needs 4 minutes", Cause::jit_tax, 0},
    {"cannot find image for module [.lib/pairs.cu.] for device version 610", Cause::no_image_for_arch, 0},
    {"Corrupted JIT cache directory: /home/u/.cache/deep_gemm", Cause::stale_cache_artifact, 0},
    {"NVRM: API mismatch: the client 'python' has the version 535.54, but this kernel module has 535.129",
     Cause::driver_mismatch, 0},
    {"FATAL: attention requires building with sm version sm80-sm90, but was built for < 8.0!",
     Cause::compiled_out, 0},
    {"Failed to load CUDA driver `libcuda.so.1`", Cause::no_device, 0},
    {"Could not load the CUDA runtime library. Is it on the path?", Cause::library_not_found, 0},
    {"CUDA toolkit not found; building without it", Cause::library_not_found, 0},
    {"OSError: /opt/env/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda124.so: cannot open "
     "shared "
     "object file: No such file or directory",
     Cause::library_not_found, 0},
    {"OSError: /opt/env/lib/python3.11/site-packages/some_ops/lib_ops.so: cannot open shared object file: No "
     "such file or directory",
     Cause::library_not_found, 0},
    {"Value 'sm_110a' is not defined for option 'gpu-name'", Cause::nvrtc_arch_unsupported, 0},
    {"java.lang.UnsatisfiedLinkError: no jnicudart in java.library.path", Cause::library_not_found, 0},
    {"INTERNAL: Failed to load PTX text as a module: CUDA_ERROR_INVALID_IMAGE", Cause::invalid_image, 200},
};

TEST(Messages, AreTakenForWhatTheyAre) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.text);
    const Explanation explanation = explain_text(row.text, {});
    ASSERT_EQ(explanation.findings.size(), 1U);
    EXPECT_EQ(row_of(explanation.findings.front().cause).name, row_of(row.cause).name);
    EXPECT_EQ(explanation.findings.front().code.value_or(0), row.code);
    EXPECT_TRUE(explanation.recognized);
  }
}

// Beside a call or a line of CUDA's source, a message of CUDA's is an error of that number; elsewhere, and
// within other words, it is no message.
TEST(Messages, AreThoseOfTheCallBesideThem) {
  const std::map<std::string, int> kCodes = {{"cudaMemcpy2D: invalid pitch argument", 12},
                                             {"could not reset (cudaDeviceReset): invalid argument", 1},
                                             {"unknown error while calling cuCtxCreate_v2", 999},
                                             {"relax.cu:88: operation not supported", 801},
                                             {"relax.cpp:88: operation not supported", 0},
                                             {"relax.cu(88): error: invalid argument type 'float'", 0},
                                             {"open(\"a.bin\"): invalid argument", 0}};
  for (const auto& [line, code] : kCodes) {
    LogParser miner(true);
    miner.line(line);
    const std::vector<LogMatch> hits = miner.take().hits;
    const auto by_number = [](const LogMatch& hit) { return hit.code != 0; };
    const auto hit = std::ranges::find_if(hits, by_number);
    EXPECT_EQ(hit == hits.end() ? 0 : hit->code, code) << line;
  }
}

// A row that no line reaches could be wrong and nobody would see it.
// The literals of a line choose the patterns that are tried: none may be left out.
TEST(Messages, LiteralsLeaveOutNoPatternThatMatches) {
  PatternSet set;
  std::vector<std::string> patterns;
  const auto add = [&](std::string_view pattern) {
    set.add(pattern);
    patterns.emplace_back(pattern);
  };
  for (const auto& row : messages()) add(row.pattern);
  for (const auto& row : clues()) add(row.pattern);
  for (const auto& row : not_cuda()) add(row.pattern);
  for (const auto& row : signs()) add(row.pattern);
  RE2::Options options;
  options.set_case_sensitive(false);
  options.set_encoding(RE2::Options::EncodingLatin1);
  std::vector<std::unique_ptr<RE2>> each;
  for (const std::string& pattern : patterns) each.push_back(std::make_unique<RE2>(pattern, options));
  std::vector<int> found;
  for (const Row& row : kRows) {
    std::vector<int> wanted;
    for (std::size_t i = 0; i < each.size(); ++i)
      if (RE2::PartialMatch(row.text, *each[i])) wanted.push_back(static_cast<int>(i));
    set.match(row.text, found);
    EXPECT_EQ(found, wanted) << row.text;
  }
}
// A literal counts once a line, and each line by itself.
TEST(Messages, CandidatesHaveAllTheirLiterals) {
  LiteralIndex index;
  EXPECT_EQ(index.add({{"ab", "cd"}, {"efg"}}), 0);
  EXPECT_EQ(index.add({}), 1);
  EXPECT_EQ(index.add({{"x"}, {"efg"}}), 2);  // a single letter chooses nothing
  EXPECT_EQ(index.add({{"efg"}, {"efgh"}}), 3);
  const auto candidates = [&](std::string_view line) {
    std::vector<int> found;
    index.candidates(line, found);
    return found;
  };
  EXPECT_EQ(candidates("ab cd ab"), (std::vector{1}));
  EXPECT_EQ(candidates("efg"), (std::vector{1, 2}));
  EXPECT_EQ(candidates("efg cd"), (std::vector{0, 1, 2}));
  EXPECT_EQ(candidates("abefgh"), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(candidates(""), (std::vector{1}));
}
TEST(Messages, TextsOfAPattern) {
  using Texts = RequiredLiterals;
  EXPECT_EQ(required_texts(R"(\bCUDA (?:runtime )?error: ([A-Z]\w+)s?x+y{2,3}z\.)"),
            (Texts{{"cuda "}, {"error: "}, {"x"}, {"z."}}));
  EXPECT_EQ(required_texts("a|b"), (Texts{{"a", "b"}}));
  EXPECT_EQ(required_texts("[]|]ab[^]]c"), (Texts{{"ab"}, {"c"}}));
  EXPECT_EQ(required_texts(R"((a\)|b)c)"), (Texts{{"a)", "b"}, {"c"}}));
  EXPECT_EQ(required_texts("(?:ab|cd(?:e|fg)+|h.ijk)l"), (Texts{{"ab", "cd", "ijk"}, {"l"}}));
  EXPECT_EQ(required_texts(R"((?-i:A|\d)|b)"), Texts());  // a digit has no text
  EXPECT_EQ(required_texts("(?P<cc>ab)?(?:cd){0,2}e(?i)f"), (Texts{{"e"}, {"f"}}));
}

TEST(Messages, AnAlternativeMatchesForItsPattern) {
  PatternSet set;
  set.add(R"(first (?P<a>\d)|[]|]second|thi\|rd|(?:fou|fi)fth)");
  set.add("none|second");
  const auto matched = [&](std::string_view line) {
    std::vector<int> found;
    set.match(line, found);
    return found;
  };
  EXPECT_EQ(matched("first 1"), (std::vector{0}));
  EXPECT_EQ(matched("|second, and thi|rd"), (std::vector{0, 1}));
  EXPECT_EQ(matched("a second"), (std::vector{1}));
  EXPECT_EQ(matched("FIFTH"), (std::vector{0}));
  EXPECT_EQ(matched("thi"), std::vector<int>());
  EXPECT_EQ(set.named_groups(0, "first 7").at("a"), "7");
}

TEST(Messages, NoErrorIsWithoutAStep) {
  for (const Row& row : kRows) {
    const Explanation explanation = explained(row.text);
    if (explanation.findings.empty() || explanation.findings.front().severity != Severity::error) continue;
    EXPECT_FALSE(explanation.findings.front().fixes.empty()) << row.text;
  }
}

TEST(Messages, EveryRowIsReached) {
  std::set<std::string> missing;
  for (const MessageRow& row : messages())
    if (row.confidence > 0) missing.insert(std::string(row.id));
  for (const Row& row : kRows) {
    LogParser miner(true);
    miner.line(row.text);
    for (const LogMatch& hit : miner.take().hits) missing.erase(hit.id);
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

// What a code says by itself is never told with more certainty than it has.
TEST(Messages, APriorIsNoProof) {
  for (const char* text : {"no kernel image is available for execution on the device",
                           "named symbol not found", "CUDA error 209"}) {
    const Explanation explanation = explain_text(text, {});
    ASSERT_EQ(explanation.findings.size(), 1U) << text;
    EXPECT_LE(explanation.findings.front().confidence, 0.5) << text;
    EXPECT_FALSE(explanation.also.empty()) << text;
    EXPECT_FALSE(explanation.next.empty()) << text;
  }
}

// What decides on Windows is no command of Linux alone.
TEST(Messages, NothingIsDecidedOnWindowsByTheShim) {
  const std::string error = "CUDA error: no kernel image is available for execution on the device";
  for (const auto& [log, first] : std::map<std::string, std::string>{
           {"D:\\tools>run.exe\n" + error, "cuobjdump"},
           {"torch 2.6.0\n  File \"D:\\tools\\run.py\", line 3, in run\n" + error, "python"},
           {"client: Windows 10\nserver: cannot load libnvcuvid.so.1\n" + error, "kshim"},
           {"/opt/tools/run.py: on Linux\n" + error, "kshim"}}) {
    const Explanation explanation = explain_text(log, {});
    ASSERT_FALSE(explanation.next.empty()) << log;
    EXPECT_EQ(explanation.next.front().command.rfind(first, 0), 0U) << explanation.next.front().command;
    const bool shim = std::ranges::any_of(explanation.next, [](const advise::NextStep& step) {
      return step.command.find("kshim") != std::string::npos;
    });
    EXPECT_EQ(shim, first == "kshim") << log;
  }
}

TEST(Messages, OtherFailuresAreNoneOfCudas) {
  for (const char* text :
       {"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
        "and cpu!",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1099511627776 bytes",
        "terminate called: std::bad_alloc",
        "AssertionError: Torch not compiled with CUDA enabled",
        "Process finished with exit code 0xC000001D",
        "[1]    4242 illegal hardware instruction  python x.py",
        "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
        "c++: fatal error: Killed signal terminated program cc1plus",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error.",
        "OSError: [Errno 98] Address already in use",
        "PermissionError: [Errno 13] Permission denied: '/x'",
        "vkCreateInstance: Found no drivers!",
        "NansException: A tensor with all NaNs was produced in Unet.",
        "error: #error C++17 or later compatible compiler is required to use ATen.",
        "exitcode : -9 (pid: 4242)",
        "svc: Failed with result 'oom-kill'",
        "python.exe exited with code 3221225501",
        "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory",
        "OSError: [WinError 126] The specified module could not be found",
        "RuntimeError: operator torchvision::nms does not exist",
        "x was not compiled with CUDA support",
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
        "False.",
        "RuntimeError: Expected object of device type cuda but got device type cpu for argument #1",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
        "memory "
        "(shm).",
        "cv2.error: OpenCV(4.9.0) error: (-216:No CUDA support) The library is compiled without CUDA support",
        "error: unsupported architecture: aarch64",
        "exec /usr/bin/python: exec format error",
        "Process exited with code -1073741515",
        "python: Aborted (core dumped)",
        "ERROR: Failed building wheel for x",
        "ERROR: x-1.0-cp310-cp310-linux_x86_64.whl is not a supported wheel on this platform.",
        "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
        "ImportError: _C.so: undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs"}) {
    const Explanation explanation = explain_text(text, {});
    EXPECT_TRUE(explanation.findings.empty()) << text;
    EXPECT_TRUE(explanation.recognized) << text;
    ASSERT_FALSE(explanation.notes.empty()) << text;
    EXPECT_NE(explanation.notes.front().find("not a CUDA failure"), std::string::npos) << text;
  }
}

TEST(Messages, OrdinaryLinesAreNothing) {
  for (const char* text : {"epoch 209 loss 0.3",
                           "HTTP error 500 from server",
                           "Error 404: not found",
                           "GET /218 200 OK",
                           "",
                           " ",
                           "causal_conv1d only supports width between 2 and 4",
                           "feature X is not supported",
                           "Unsupported architecture: x86_64",
                           "python 3.8 is no longer supported",
                           "compiled for 64 bit, device ready",
                           "requires Python >= 3.9",
                           "CMAKE_CUDA_ARCHITECTURES=90",
                           "GPU 0: 75 C",
                           "saved 700 images",
                           "the driver said hello",
                           "CUDA version 12.4 found",
                           "driver 550.54 is installed",
                           "only 3 are supported",
                           "the build needs 12 GiB",
                           "compute capability 8.6 detected",
                           "CMake 3.28 or newer is required",
                           "built for sm_90",
                           "Using CUDA 12.8 or newer headers",
                           "loading the CUDA driver took 3 s"}) {
    const Explanation explanation = explain_text(text, {});
    EXPECT_TRUE(explanation.findings.empty()) << text;
    EXPECT_FALSE(explanation.recognized && !explanation.meanings.empty()) << text;
  }
}

// What is vague counts alone: it neither hides a message nor makes two of it.
TEST(Messages, AVagueRowCountsWhereNothingElseDoes) {
  const Explanation explanation = explain_text(
      "nvcc fatal   : Unsupported gpu architecture 'compute_120'\n"
      "RuntimeError: arch unsupported by the build\n",
      {});
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings.front().cause, Cause::nvrtc_arch_unsupported);
}

TEST(Messages, ALaterFailureDecidesOverAWarning) {
  const Explanation explanation = explain_text(
      "[12:00:00] [warning] load: CUDA error: operation not supported\n"
      "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
      {});
  ASSERT_FALSE(explanation.findings.empty());
  EXPECT_EQ(explanation.findings.front().cause, Cause::no_image_for_arch);
}

// PyTorch for ROCm says CUDA where it means HIP; an NVIDIA GPU beside it is told.
TEST(Messages, RocmIsNoFailureOfCudas) {
  const std::string failed = "torch.AcceleratorError: CUDA error: device kernel image is invalid\n";
  const Explanation rocm =
      explain_text(failed + "For debugging consider passing AMD_SERIALIZE_KERNEL=3\n", {});
  EXPECT_TRUE(rocm.findings.empty());
  EXPECT_TRUE(rocm.recognized);
  EXPECT_FALSE(explain_text(failed + "GPU 0: NVIDIA GeForce RTX 3090, and one for torch 2.9.1+rocm7.0\n", {})
                   .findings.empty());
}

TEST(Messages, AWarningThatIsWrongIsCalledSo) {
  const Explanation explanation = explain_text(
      "NVIDIA GB10 with CUDA capability sm_121 is not compatible with the current PyTorch installation.\n"
      "The current PyTorch install supports CUDA capabilities sm_80 sm_90 sm_100 sm_120.\n",
      {});
  EXPECT_TRUE(explanation.findings.empty());
  ASSERT_FALSE(explanation.notes.empty());
  EXPECT_NE(explanation.notes.front().find("does not apply"), std::string::npos);
}

}  // namespace
}  // namespace kshim::test
