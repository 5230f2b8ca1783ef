// SPDX-License-Identifier: Apache-2.0
// A plug-in that has nothing to do with CUDA, and uses dlsym. PLUGIN_OPENS: as a scripting language's FFI, it
// opens that library, which no file names, and calls cuInit.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(LARGE)
// The name of the driver is far from the beginning of the file.
static const struct {
  char much[8 << 20];
  char name[16];
} g_large = {{1}, "libcuda.so.1"};
#endif

int plugin_run(void) {
#if defined(LARGE)
  const char* const name = g_large.name;
#else
  const char* const name = getenv("PLUGIN_OPENS");
#endif
  if (name != 0) {
    int (*start)(unsigned) = 0;
    *(void**)&start = dlsym(dlopen(name, RTLD_NOW), "cuInit");
    printf("cuInit: %d\n", start(0));
    usleep(600 * 1000);  // so that `kshim run` looks at least once
  }
  printf("plugin: %d\n", dlsym(RTLD_DEFAULT, "printf") == 0);
  fflush(stdout);
  return 0;
}
