/* SPDX-License-Identifier: Apache-2.0
 * Asks the preloads (next_symbol.c) for their order, through RTLD_DEFAULT. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  typedef const char* (*Chain)(char*, size_t);
  char order[64] = "";
  void* found = dlsym(RTLD_DEFAULT, "kshim_e2e_chain");
  Chain call;
  memcpy(&call, &found, sizeof call);
  puts(call == NULL ? "none" : call(order, sizeof order));
  /* A failed look-up leaves its message for us, and nobody else's. */
  dlerror();
  dlsym(RTLD_DEFAULT, "kshim_e2e_no_such_symbol");
  const char* message = dlerror();
  puts(message != NULL && strstr(message, "kshim_e2e_no_such_symbol") != NULL ? "dlerror is ours"
                                                                              : "dlerror is lost");
  return 0;
}
