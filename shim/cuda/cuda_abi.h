// SPDX-License-Identifier: Apache-2.0
// The few CUDA types the shim passes through. Declared here, not taken from <cuda.h>: one binary serves CUDA
// 11, 12 and 13 and builds without a toolkit, and <cuda.h> renames functions by macro. tests/abi compares
// every row of hooks.def with the real headers. Where a plain `const void*` or `const char*` of CUDA has a
// meaning the shim cares about, it gets a type of its own (same ABI), from which CallArgs picks arguments
// without knowing the function.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kshim::shim::abi {

using Result = int;  ///< CUresult and cudaError_t: enums that fit an int
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using Enum = unsigned int;  ///< any other C enum: unsigned int for gcc and clang, 4 bytes in either case

using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUlinkState = struct CUlinkState_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

/// CUuuid.
struct Uuid {
  char bytes[16];
};

using ImageData = const struct ImageBlob*;       ///< fatbin wrapper, fatbin, cubin or PTX text
using SymbolName = const struct NameText*;       ///< zero-terminated name of a kernel or variable
using FileName = const struct FileText*;         ///< zero-terminated path
using JitOptions = const struct JitOptionList*;  ///< CUjit_option*
using JitValues = void* const*;                  ///< the values of these, each in a pointer
enum class JitCount : unsigned {};               ///< how many there are
using HostFunction = const struct HostStub*;     ///< address of a kernel's host stub
using HostVariable = const struct HostShadow*;   ///< address of a device variable's host shadow
using FatbinHandle = void**;                     ///< what __cudaRegisterFatBinary returns

/// nvrtcCompileProgram, nvJitLinkCreate: all rows of compilers.def.
using CompilerFunction = Result (*)(void* program, unsigned count, const char* const* options);

/// Passed by value: three unsigned, as dim3.
struct Dim3 {
  unsigned x, y, z;
};

/// CUDA_KERNEL_NODE_PARAMS: versions 2 and 3 add the members from `kernel` on; version 1 ends before it.
struct KernelNodeParamsV1 {
  CUfunction function;
};
struct KernelNodeParams {
  CUfunction function;
  unsigned grid[3], block[3], shared_bytes;
  void** arguments;
  void** extra;
  CUkernel kernel;
};
/// cudaKernelNodeParams.
struct RuntimeKernelNodeParams {
  HostFunction function;
};

}  // namespace kshim::shim::abi
