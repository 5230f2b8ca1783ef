// SPDX-License-Identifier: Apache-2.0
// Device code of the clients that load it themselves: built into kernels.fatbin, .cubin and .ptx.
extern "C" __global__ void scale(float* data, float factor) { data[threadIdx.x] *= factor; }
extern "C" __global__ void shift(float* data, float by) { data[threadIdx.x] += by; }
