// SPDX-License-Identifier: Apache-2.0
// own_names: a program that has something of its own under a name of libc's: OWN_UNAME a variable,
// OWN_ITERATE a list of what is loaded, made at the start (as programs have it that unwind a lot), OWN_CALLS
// functions that end the program when they are called from elsewhere.
#define _GNU_SOURCE
#if defined(OWN_ITERATE)
#include <link.h>
#endif
#include <stdio.h>
#include <stdlib.h>

// Not <dlfcn.h>, which declares one of the names.
extern void* dlopen(const char*, int);
extern void* dlsym(void*, const char*);
#undef RTLD_NEXT
#define RTLD_NEXT ((void*)-1L)
#undef RTLD_NOW
#define RTLD_NOW 2

#if defined(OWN_UNAME)
int uname = 1;
int sigaddset = 1, sigemptyset = 1, sigismember = 1, clock_gettime = 1, getauxval = 1, dladdr = 1;
#elif defined(OWN_ITERATE)
static struct dl_phdr_info g_list[64];
static int g_count;
__attribute__((constructor)) static void list(void) {
  int (*real)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
  extern int kshim_test_add(struct dl_phdr_info*, size_t, void*);
  *(void**)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  real(kshim_test_add, 0);
}
int kshim_test_add(struct dl_phdr_info* info, size_t size, void* context) {
  (void)size, (void)context;
  if (g_count < 64) g_list[g_count++] = *info;
  return 0;
}
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info*, size_t, void*), void* context) {
  int result = 0;
  for (int i = 0; i < g_count && result == 0; ++i) result = visit(&g_list[i], sizeof g_list[i], context);
  return result;
}
#elif defined(OWN_CALLS)
static void called(const char* name) {
  puts(name);
  fflush(stdout);
  _Exit(9);
}
#define OWN(name)  \
  long name();     \
  long name() {    \
    called(#name); \
    return -1;     \
  }
OWN(syscall)
OWN(uname)
OWN(sigaddset)
OWN(sigemptyset)
OWN(sigismember)
OWN(getauxval)
OWN(dladdr)
#endif

typedef long (*Function)(long, long, long, long, long, long);
static Function function(void* handle, const char* name) {
  Function found;
  *(void**)&found = dlsym(handle, name);
  return found;
}

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == 0) return 3;
  Function start = function(driver, "cuInit");
  Function load = function(driver, "cuModuleLoadData");
  Function find = function(driver, "cuModuleGetFunction");
  if (start == 0 || load == 0 || find == 0) return puts("there is no driver"), 4;
  const long init = start(0, 0, 0, 0, 0, 0);
  *(volatile int*)dlsym(driver, "plain_driver") = 209;  // PlainSettings::answer
  long module = 0;
  const long bad = load((long)&module, (long)"none", 0, 0, 0, 0);
  const long none = find((long)&module, 0x70000000, (long)"none", 0, 0, 0);
  printf("%ld %ld %ld\n", init, bad, none);
  return 0;
}
