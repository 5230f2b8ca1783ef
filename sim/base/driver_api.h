// SPDX-License-Identifier: Apache-2.0
// <cuda.h> with every symbol under its own name: the internal-version macro declares cuMemAlloc,
// cuMemAlloc_v2 and all _ptds/_ptsz twins as the 637 distinct functions that libcuda.so.1 exports, instead of
// renaming one into the other.
#pragma once
#define __CUDA_API_VERSION_INTERNAL  // NOLINT(bugprone-reserved-identifier): NVIDIA's name
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC diagnostic pop
#include "base/graphics_api.h"
