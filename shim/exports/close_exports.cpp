// SPDX-License-Identifier: Apache-2.0
// dlclose: it may unload the driver or a runtime. A library that is opened later, and that is linked to it,
// calls the shim's functions, which must not go on to where it was.
#include "cuda/real_functions.h"
#include "exports/next_functions.h"

#if defined(__x86_64__)
#define KSHIM_OLD_GLIBC "GLIBC_2.2.5"
#else
#define KSHIM_OLD_GLIBC "GLIBC_2.17"
#endif

// A destructor of the library may unwind this frame, or not return: then the tables stay empty, and each call
// asks for its function.
extern "C" [[gnu::visibility("default")]] int kshim_dlclose(void* library) {
  using namespace kshim::shim;
  CloseFn next = g_next_dlclose.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<CloseFn>(find_next("dlclose"));
    if (next == nullptr) return -1;
    g_next_dlclose.store(next, std::memory_order_relaxed);
  }
  close_begins();
  const int status = next(library);
  close_ends();
  return status;
}
// New programs ask for the first, programs from before glibc 2.34 for the second.
asm(".symver kshim_dlclose, dlclose@@GLIBC_2.34");
extern "C" [[gnu::visibility("default"), gnu::alias("kshim_dlclose")]] int kshim_old_dlclose(void*);
asm(".symver kshim_old_dlclose, dlclose@" KSHIM_OLD_GLIBC);
