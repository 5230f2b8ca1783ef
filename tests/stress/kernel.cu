// SPDX-License-Identifier: Apache-2.0
// What the threads of stress.cpp load: built once for the device that is simulated, once for one that is not.
extern "C" __global__ void stressed(int* out) { *out = 1; }
