// SPDX-License-Identifier: Apache-2.0
// A plug-in that has nothing to do with CUDA, and uses dlsym.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int plugin_run(void) {
  printf("plugin: %d\n", dlsym(RTLD_DEFAULT, "printf") == 0);
  fflush(stdout);
  return 0;
}
