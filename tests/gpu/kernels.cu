// SPDX-License-Identifier: Apache-2.0
// Two kernels and a variable; built for many targets by CMakeLists.txt, loaded by driver_facts.cpp.
extern "C" __device__ int counter = 7;
extern "C" __global__ void first(int* out, int value) {
  if (out != nullptr) *out = value + counter;
}
#ifndef KSHIM_FIRST_ONLY
extern "C" __global__ void second(int* out) {
  if (out != nullptr) *out = 2;
}
#endif
