// SPDX-License-Identifier: Apache-2.0
// LIBRARY: a runtime 11 in a file that wheels have renamed (libcudart-e409450e.so.11.0): another soname, the
// same version on its symbols. Else a program of it.
int cudaMalloc(void** out, unsigned long size);

#ifdef LIBRARY
int cudaMalloc(void** out, unsigned long size) {
  *out = out;
  return (int)size;
}
#else
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void* memory = 0;
  int linked = cudaMalloc(&memory, 42);
  void* library = dlopen("libcudart-e409450e.so.11.0", RTLD_NOW | RTLD_NOLOAD);
  int (*found)(void**, unsigned long) = 0;
  if (library != 0) *(void**)&found = dlsym(library, "cudaMalloc");
  printf("%d %d\n", linked, found == 0 ? -1 : found(&memory, 43));
  return 0;
}
#endif
