/* SPDX-License-Identifier: Apache-2.0
 * A preload that interposes and asks for what it hides: built twice, as `second` and `third`, each with its
 * NAME. Also hides cuModuleLoad, as a profiler would. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char* kshim_e2e_chain(char* out, size_t size);

const char* kshim_e2e_chain(char* out, size_t size) {
  typedef const char* (*Chain)(char*, size_t);
  strncat(out, NAME " ", size - strlen(out) - 1);
  void* next = dlsym(RTLD_NEXT, "kshim_e2e_chain");
  Chain call;
  memcpy(&call, &next, sizeof call); /* ISO C has no cast from void* to a function */
  return call == NULL ? out : call(out, size);
}

int cuModuleLoad(void** module, const char* path);

int cuModuleLoad(void** module, const char* path) {
  typedef int (*Load)(void**, const char*);
  void* next = dlsym(RTLD_NEXT, "cuModuleLoad");
  Load call;
  memcpy(&call, &next, sizeof call);
  fprintf(stderr, NAME ": cuModuleLoad\n");
  return call == NULL ? 999 : call(module, path);
}
