// SPDX-License-Identifier: Apache-2.0
// Initializes the driver with libraries mapped, and ends with a status: loads_parts STATUS LIBRARY...
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) != NULL) continue;
    fprintf(stderr, "%s\n", dlerror());
    return 99;
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* init = driver != NULL ? dlsym(driver, "cuInit") : NULL;
  if (init == NULL) return 98;
  int (*call)(unsigned);
  *(void**)&call = init;
  if (call(0) != 0) return 97;
  return argc > 1 ? atoi(argv[1]) : 0;
}
