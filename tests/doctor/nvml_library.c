// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 that does what NVML_... says when it is asked.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void) {
#if defined(NVML_crashes)
  *(volatile int*)0 = 1;  // as a library of another release than the kernel module does
#elif defined(NVML_hangs)
  for (;;) pause();
#elif defined(NVML_leaves)
  exit(0);
#elif defined(NVML_refuses)
  return 18;
#endif
  return 0;
}

const char* nvmlErrorString(int result) {
  return result == 18 ? "Driver/library version mismatch" : "Success";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "580.82.07", size);
  return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (char*)0 + index + 1;
  return 0;
}

int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  strncpy(text, device == (char*)0 + 1 ? "NVIDIA \"One\" (simulated)" : "NVIDIA \xff", size);
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  if (device != (char*)0 + 1) return 1;
  *major = 12;
  *minor = 1;
  return 0;
}
