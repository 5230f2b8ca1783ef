// SPDX-License-Identifier: Apache-2.0
// A preload that stands in for getauxval and looks for the next one when it is first asked.
#include <dlfcn.h>
#include <string.h>

unsigned long getauxval(unsigned long type);

unsigned long getauxval(unsigned long type) {
  static unsigned long (*next)(unsigned long);
  if (!next) {
    void* const found = dlsym(RTLD_NEXT, "getauxval");
    memcpy(&next, &found, sizeof next);
  }
  return next(type);
}
