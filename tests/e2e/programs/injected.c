// SPDX-License-Identifier: Apache-2.0
// Somebody else's library for CUDA_INJECTION64_PATH.
#include <stdio.h>

__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void) {
  puts("injected");
  fflush(stdout);
  return 1;
}
