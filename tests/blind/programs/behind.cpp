// SPDX-License-Identifier: Apache-2.0
// Another tool, preloaded behind the shim: goes on to the next definition of cuInit, which must not be the
// shim again.
#include <dlfcn.h>

#include <cstdio>

extern "C" int cuInit(unsigned flags) {
  static int depth = 0;
  if (++depth > 3) return 999;
  const auto next = reinterpret_cast<int (*)(unsigned)>(dlsym(RTLD_NEXT, "cuInit"));
  const int result = next == nullptr ? 3 : next(flags);
  std::printf("behind: %d at depth %d\n", result, depth);
  std::fflush(stdout);
  --depth;
  return result;
}
