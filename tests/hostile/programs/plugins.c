// SPDX-License-Identifier: Apache-2.0
// Small libraries, one for each macro.
#define _GNU_SOURCE
#if defined(OWNS_FUNCTION)
// A table of the driver's functions under the driver's own names, as cuew and its like have it.
long cuInit(unsigned flags);
long cuInit(unsigned flags) { return 77 + (long)flags; }
#elif defined(OWNS_DATA)
long (*cuInit)(unsigned) = 0;
long (*cuMemAlloc_v2)(void*, long) = 0;
#elif defined(FILLS_DATA)
// NVIDIA's old samples and slang-rhi keep the driver's functions in variables of the same names.
#include <dlfcn.h>
long (*cuInit)(unsigned) = 0;
long (*cuMemAlloc_v2)(void*, long) = 0;
// Another pointer to the variable, in data that is read-only after relocation.
static void** const g_also = (void**)&cuMemAlloc_v2;
long fills_data(void);
long fills_data(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void**)&cuInit = driver == 0 ? 0 : dlsym(driver, "cuInit");
  *g_also = driver == 0 ? 0 : dlsym(driver, "cuMemAlloc_v2");
  return cuInit == 0 ? -1 : cuInit(0) + 10 * cuMemAlloc_v2(0, 1);
}
// What slang-rhi does where there is no driver: it looks up a function that has no hook, and clears all.
long clears_data(void);
long clears_data(void) {
  if (dlsym(RTLD_DEFAULT, "cuGetErrorString") != 0) return 1;
  cuInit = 0;
  *g_also = 0;
  return 0;
}
#elif defined(FORWARDS)
// The driver's functions under their own names, each of which looks the real one up when it is first called:
// TensorFlow's and Implib.so's manner.
#include <dlfcn.h>
static void* real(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver == 0 ? 0 : dlsym(driver, name);
}
int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  int (*init)(unsigned);
  *(void**)&init = real("cuInit");
  return init == 0 ? 303 : init(flags);
}
int cuDriverGetVersion(int* out);
int cuDriverGetVersion(int* out) {
  int (*version)(int*);
  *(void**)&version = real("cuDriverGetVersion");
  return version == 0 ? 304 : version(out);
}
long forwards(int order);
long forwards(int order) {
  int version = 0;
  const int first = order == 0 ? cuInit(0) : cuDriverGetVersion(&version);
  const int second = order == 0 ? cuDriverGetVersion(&version) : cuInit(0);
  return first + 1000L * second + (version == 0 ? 0 : 1000000L);
}
#elif defined(USES_DRIVER)
#include <dlfcn.h>
long cuInit(unsigned flags);
long cuMemAlloc_v2(void* out, long size);
long uses_driver(void);
long uses_driver(void) { return cuInit(0); }
long allocates(void);
long allocates(void) { return cuMemAlloc_v2(0, 1) + 1; }
long looks_driver_up(void);
long looks_driver_up(void) {
  long (*init)(unsigned);
  *(void**)&init = dlsym(RTLD_DEFAULT, "cuInit");
  return init == 0 ? -1 : init(0);
}
#elif defined(USES_RUNTIME)
long cudaMalloc(void* out, long size);
long cudaRuntimeGetVersion(void* out);
long __cudaRegisterFatBinary(void* wrapper);
long allocates(void);
long allocates(void) { return cudaMalloc(0, 1) + 1; }
long registers(void);
long registers(void) { return cudaRuntimeGetVersion(0) + __cudaRegisterFatBinary(0); }
#elif defined(STAYS)
// Its dlclose does not return: it writes to the descriptor, and waits.
#include <unistd.h>
int stays_tells = -1;
__attribute__((destructor)) static void stay(void) {
  if (stays_tells < 0) return;
  if (write(stays_tells, "x", 1) == 1)
    for (;;) pause();
}
#elif defined(WEAK)
// Tests for the driver, as a program that is not linked to it may.
long cuInit(unsigned flags) __attribute__((weak));
long weak(void);
long weak(void) { return cuInit == 0 ? -1 : cuInit(0); }
#elif defined(ASKS)
#include <dlfcn.h>
typedef long (*Init)(unsigned);
static long ask(void* handle) {
  Init init;
  *(void**)&init = dlsym(handle, "cuInit");
  return init == 0 ? -1 : init(0);
}
long asks_default(void);
long asks_next(void);
long asks_default(void) { return ask(RTLD_DEFAULT); }
long asks_next(void) { return ask(RTLD_NEXT); }
#elif defined(CALLS_BACK)
// Needs nothing: nobody has to look a name up in it.
void calls_back(void (*function)(void));
#if defined(MANY_SYMBOLS)
// All frames of a long way are in this library.
__attribute__((noinline)) static void calls_deeper(void (*function)(void), int depth) {
  if (depth == 0)
    function();
  else
    calls_deeper(function, depth - 1);
  __asm__ volatile("");
}
void calls_back(void (*function)(void)) { calls_deeper(function, 60); }
__asm__(
    ".altmacro\n"
    ".macro one n\n.globl kshim_test_symbol_\\n\n.type "
    "kshim_test_symbol_\\n,@function\nkshim_test_symbol_\\n:\n"
    ".byte 0xc3\n.size kshim_test_symbol_\\n,1\n.endm\n"
    ".text\n.set i,0\n.rept 100000\none %i\n.set i,i+1\n.endr\n");
#else
void calls_back(void (*function)(void)) {
  function();
  __asm__ volatile("");
}
#endif
#elif defined(LAUNCHER)
// What a just-in-time compiler of kernels makes: device code of its own, loaded by the library itself.
typedef long (*Load)(long*, const void*);
typedef long (*LookUp)(long*, long, const char*);
static const char g_image[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
long kshim_test_load(Load load, LookUp look_up);
long kshim_test_load(Load load, LookUp look_up) {
  long module = 0, function = 0;
  const long loaded = load(&module, g_image);
  return loaded + look_up(&function, module, "k");
}
#endif
