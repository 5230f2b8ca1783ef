// SPDX-License-Identifier: Apache-2.0
// replaces GOOD BAD: a program that defines functions of libc itself, as profilers, sandboxes and test
// frameworks do, and counts which of them are called from libkshim.so. Its definitions pass six words on,
// which is enough for each of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef long Word;

static uintptr_t g_low, g_high;
static int g_foreign;

static int find_shim(struct dl_phdr_info* info, size_t size, void* context) {
  (void)size, (void)context;
  const char* base = info->dlpi_name;
  for (const char* at = info->dlpi_name; *at != 0; ++at)
    if (*at == '/') base = at + 1;
  if (strcmp(base, "libkshim.so") != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    if (g_low == 0) g_low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    g_high = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

static void look(const char* name, const void* caller) {
  if (g_low == 0) dl_iterate_phdr(find_shim, 0);
  if ((uintptr_t)caller < g_low || (uintptr_t)caller >= g_high) return;
  ++g_foreign;
  printf("libkshim.so calls the host's %s\n", name);
}

#define REPLACE(name)                                                                  \
  Word replaced_##name(Word a, Word b, Word c, Word d, Word e, Word f) __asm__(#name); \
  Word replaced_##name(Word a, Word b, Word c, Word d, Word e, Word f) {               \
    static Word (*real)(Word, Word, Word, Word, Word, Word);                           \
    if (real == 0) *(void**)&real = dlsym(RTLD_NEXT, #name);                           \
    look(#name, __builtin_return_address(0));                                          \
    return real(a, b, c, d, e, f);                                                     \
  }
REPLACE(getenv)
REPLACE(secure_getenv)
REPLACE(open)
REPLACE(open64)
REPLACE(openat)
REPLACE(close)
REPLACE(read)
REPLACE(pread)
REPLACE(pread64)
REPLACE(write)
REPLACE(pwrite)
REPLACE(fcntl)
REPLACE(fcntl64)
REPLACE(fstat)
REPLACE(stat)
REPLACE(ftruncate)
REPLACE(ftruncate64)
REPLACE(mkdir)
REPLACE(readlink)
REPLACE(getcwd)
REPLACE(mmap)
REPLACE(mmap64)
REPLACE(munmap)
REPLACE(mprotect)
REPLACE(madvise)
REPLACE(poll)
REPLACE(socket)
REPLACE(sendto)
REPLACE(getpid)
REPLACE(getppid)
REPLACE(geteuid)
REPLACE(sched_yield)
REPLACE(getrlimit)
REPLACE(sigaltstack)
REPLACE(sigpending)
REPLACE(sigprocmask)
REPLACE(pthread_sigmask)
REPLACE(pthread_mutex_lock)
REPLACE(pthread_mutex_unlock)
REPLACE(pthread_rwlock_rdlock)
REPLACE(pthread_rwlock_wrlock)
REPLACE(pthread_getattr_np)
REPLACE(fputs)
REPLACE(fwrite)
REPLACE(fflush)

static char g_image[1 << 20];

static const void* contents(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == 0 || fread(g_image, 1, sizeof g_image, file) == 0) return 0;
  fclose(file);
  return g_image;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == 0) return 3;
  int (*start)(unsigned);
  int (*retain)(void**, int);
  int (*enter)(void*);
  int (*load)(void**, const void*);
  int (*find)(void**, void*, const char*);
  *(void**)&start = dlsym(driver, "cuInit");
  *(void**)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void**)&enter = dlsym(driver, "cuCtxSetCurrent");
  *(void**)&load = dlsym(driver, "cuModuleLoadData");
  *(void**)&find = dlsym(driver, "cuModuleGetFunction");
  void* context = 0;
  void* module = 0;
  void* function = 0;
  const int init = start(0);
  retain(&context, 0);
  enter(context);
  const int good = load(&module, contents(argv[1]));
  const int none = find(&function, module, "none");
  const int bad = load(&module, contents(argv[2]));
  printf("%d %d %d %d\n", init, good, none, bad);
  return g_foreign == 0 ? 0 : 1;
}
