// SPDX-License-Identifier: Apache-2.0
// dlclose: it may unload the driver or a runtime. A library that is opened later, and that is linked to it,
// calls the shim's functions, which must not go on to where it was.
#include "exports/close_exports.h"

#include "cuda/next_symbol.h"
#include "guest/errno_keeper.h"
#include "guest/scratch_stack.h"
#include "process/link_map.h"

namespace kshim::shim {

namespace {

/// For a call before the shim's constructor ran, or where libdl is mapped later.
[[gnu::noinline, gnu::cold]] CloseFn find_next() noexcept {
  const ErrnoKeeper keeper;
  NextFunction found[] = {{"dlclose"}};
  on_new_stack([&] { find_after_shim(found); });
  const auto next = reinterpret_cast<CloseFn>(found[0].address);
  g_next_dlclose.store(next, std::memory_order_relaxed);
  return next;
}

}  // namespace
}  // namespace kshim::shim

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
  if (next == nullptr && (next = find_next()) == nullptr) return -1;
  close_begins();
  const int status = next(library);
  const ErrnoKeeper keeper;
  close_ends();
  return status;
}
// New programs ask for the first, programs from before glibc 2.34 for the second.
asm(".symver kshim_dlclose, dlclose@@GLIBC_2.34");
extern "C" [[gnu::visibility("default"), gnu::alias("kshim_dlclose")]] int kshim_old_dlclose(void*);
asm(".symver kshim_old_dlclose, dlclose@" KSHIM_OLD_GLIBC);
