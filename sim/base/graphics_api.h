// SPDX-License-Identifier: Apache-2.0
// What cudaGL.h and cudaEGL.h declare and programs look up at their start (Dr.Jit, Warp): exported like the
// rest, and answered with 801. Declared here because those headers want OpenGL's and EGL's.
#pragma once
#include <cuda.h>

extern "C" {
CUresult CUDAAPI cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned buffer, unsigned flags);
CUresult CUDAAPI cuGraphicsGLRegisterImage(CUgraphicsResource* resource, unsigned image, unsigned target,
                                           unsigned flags);
CUresult CUDAAPI cuGLGetDevices(unsigned* count, CUdevice* devices, unsigned most, unsigned list);
CUresult CUDAAPI cuGLGetDevices_v2(unsigned* count, CUdevice* devices, unsigned most, unsigned list);
CUresult CUDAAPI cuGraphicsEGLRegisterImage(CUgraphicsResource* resource, void* image, unsigned flags);
}
