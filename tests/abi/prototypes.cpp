// SPDX-License-Identifier: Apache-2.0
// Nothing to run: it compiles when every row of hooks.def agrees with the toolkit's headers. The runtime's
// registration functions are declared for nvcc's own output only; exports.py reads their prototypes as text.
#include "prototypes.h"

// Every symbol under its own name, none renamed into another.
#define __CUDA_API_VERSION_INTERNAL  // NOLINT(bugprone-reserved-identifier): NVIDIA's name
#include <cuda.h>
#include <cuda_runtime_api.h>
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif
#if __has_include(<nvJitLink.h>)
#include <nvJitLink.h>
#endif

// Declared for nvcc alone (crt/device_functions.h).
extern "C" cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
extern "C" cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);

namespace kshim::abi_test {

namespace theirs {
#define KSHIM_THEIRS_plain(name) using name = decltype(::name);
#define KSHIM_THEIRS_registration(name)
#define KSHIM_THEIRS_init KSHIM_THEIRS_plain
#define KSHIM_THEIRS_load KSHIM_THEIRS_plain
#define KSHIM_THEIRS_lookup KSHIM_THEIRS_plain
#define KSHIM_THEIRS_query KSHIM_THEIRS_plain
#define KSHIM_THEIRS_launch KSHIM_THEIRS_plain
#define KSHIM_THEIRS_other KSHIM_THEIRS_plain
#define KSHIM_THEIRS_poll KSHIM_THEIRS_plain
#define KSHIM_THEIRS_unload KSHIM_THEIRS_plain
#define KSHIM_THEIRS_link KSHIM_THEIRS_plain
#define KSHIM_THEIRS_route KSHIM_THEIRS_plain
#define KSHIM_THEIRS_table KSHIM_THEIRS_plain
#define KSHIM_THEIRS_read KSHIM_THEIRS_plain
#define KSHIM_THEIRS_version KSHIM_THEIRS_plain
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_THEIRS_##stage(name)
#include "cuda/hooks.def"
#undef KSHIM_HOOK
}  // namespace theirs

namespace ours {
using namespace kshim::shim::abi;
#define KSHIM_HOOK(layer, name, ret, params, args, stage) using name = ret params;
#include "cuda/hooks.def"
#undef KSHIM_HOOK
}  // namespace ours

#define KSHIM_COMPARE_plain(name)                         \
  static_assert(Compare<ours::name, theirs::name>::value, \
                #name ": hooks.def and the toolkit's header disagree");
#define KSHIM_COMPARE_registration(name)
#define KSHIM_COMPARE_init KSHIM_COMPARE_plain
#define KSHIM_COMPARE_load KSHIM_COMPARE_plain
#define KSHIM_COMPARE_lookup KSHIM_COMPARE_plain
#define KSHIM_COMPARE_query KSHIM_COMPARE_plain
#define KSHIM_COMPARE_launch KSHIM_COMPARE_plain
#define KSHIM_COMPARE_other KSHIM_COMPARE_plain
#define KSHIM_COMPARE_poll KSHIM_COMPARE_plain
#define KSHIM_COMPARE_unload KSHIM_COMPARE_plain
#define KSHIM_COMPARE_link KSHIM_COMPARE_plain
#define KSHIM_COMPARE_route KSHIM_COMPARE_plain
#define KSHIM_COMPARE_table KSHIM_COMPARE_plain
#define KSHIM_COMPARE_read KSHIM_COMPARE_plain
#define KSHIM_COMPARE_version KSHIM_COMPARE_plain
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_COMPARE_##stage(name)
#include "cuda/hooks.def"
#undef KSHIM_HOOK

// The rows of compilers.def have one shape.
using Compiler = std::remove_pointer_t<shim::abi::CompilerFunction>;
#if __has_include(<nvrtc.h>)
static_assert(Compare<Compiler, decltype(::nvrtcCompileProgram)>::value, "nvrtcCompileProgram");
#endif
#if __has_include(<nvJitLink.h>)
static_assert(Compare<Compiler, decltype(::nvJitLinkCreate)>::value, "nvJitLinkCreate");
#endif

// What the shim reads of structures that it is handed.
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v1, func) ==
              offsetof(kshim::shim::abi::KernelNodeParamsV1, function));
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v2, func) ==
              offsetof(kshim::shim::abi::KernelNodeParams, function));
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern) ==
              offsetof(kshim::shim::abi::KernelNodeParams, kernel));
static_assert(offsetof(cudaKernelNodeParams, func) ==
              offsetof(kshim::shim::abi::RuntimeKernelNodeParams, function));

}  // namespace kshim::abi_test
