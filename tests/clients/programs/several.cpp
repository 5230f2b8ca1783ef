// SPDX-License-Identifier: Apache-2.0
// several LIBRARY...: runs each library's old_run(), all runtimes in one process.
#include <dlfcn.h>

#include "client.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      return 3;
    }
    step("old_run", reinterpret_cast<int (*)()>(dlsym(library, "old_run"))());
  }
  return g_failed;
}
