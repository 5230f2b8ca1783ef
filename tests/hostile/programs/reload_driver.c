// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that can be unloaded: one device, and no image that it likes.
int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* out) { return *out = 12040, 0; }
int cuDeviceGetCount(int* out) { return *out = 1, 0; }
int cuDeviceGet(int* out, int ordinal) { return *out = ordinal, 0; }
int cuCtxGetDevice(int* out) { return *out = 0, 0; }
int cuModuleLoadData(void** out, const void* image) {
  *out = 0;
  return image == 0 ? 1 : 200;
}
static int here(void) { return 0; } /* not a name that another library may stand in for */
void* reload_driver_here(void) { return (void*)(__UINTPTR_TYPE__)here; }
