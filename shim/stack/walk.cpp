// SPDX-License-Identifier: Apache-2.0
#include "stack/walk.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "guest.h"
#include "system_calls.h"

namespace kshim::shim {
namespace {

constinit thread_local void** t_way_out = nullptr;
constinit thread_local bool t_holds_cache = false;
PatientLock g_cache_lock;  // libunwind's table of frame descriptions
std::atomic<bool> g_off{false};

constexpr std::size_t kRoom = 65536;
alignas(16) std::byte g_room[kRoom];
std::atomic<std::size_t> g_used{0};

[[gnu::noinline]] void give_up() noexcept {
  if (t_holds_cache) {
    t_holds_cache = false;
    g_cache_lock.release();
  }
  if (t_way_out != nullptr) __builtin_longjmp(t_way_out, 1);
}

}  // namespace

// No local is needed after the jump: its value would be undefined. No walk is inside another one.
[[gnu::noinline]] bool guarded_walk(void (*walk)(void*), void* context) noexcept {
  static thread_local void* t_registers[8];  // the compiler's: five words
  if (g_off.load(std::memory_order_relaxed)) return false;
  if (__builtin_setjmp(t_registers) != 0) {
    t_way_out = nullptr;
    return false;
  }
  t_way_out = t_registers;
  walk(context);
  t_way_out = nullptr;
  return true;
}

}  // namespace kshim::shim

// What the linker gives to libunwind in place of libc's functions. None of them is exported.
using namespace kshim::shim;
extern "C" {
void* __wrap_malloc(std::size_t size);
void __wrap_free(void* memory);
char* __wrap_getenv(const char* name);
[[noreturn]] void __wrap_abort();
[[noreturn]] void __wrap___assert_fail(const char*, const char*, unsigned, const char*);
int __wrap_fprintf(FILE*, const char*, ...);
std::size_t __wrap_fwrite(const void*, std::size_t, std::size_t, FILE*);
int __wrap_fflush(FILE*);
int __wrap_pthread_rwlock_rdlock(void*);
int __wrap_pthread_rwlock_wrlock(void*);
int __wrap_pthread_rwlock_unlock(void*);

/// Its table of frame descriptions grows fourfold, for files without .eh_frame_hdr. It does not look whether
/// there was memory, and holds its lock: where there is none, nobody walks any more.
void* __wrap_malloc(std::size_t size) {
  size = (size + 15) & ~std::size_t{15};
  std::size_t used = g_used.load(std::memory_order_relaxed);
  while (size <= kRoom - used)
    if (g_used.compare_exchange_weak(used, used + size, std::memory_order_relaxed)) return g_room + used;
  void* memory = raw::map_memory(size);
  if (memory != nullptr) return memory;
  g_off.store(true, std::memory_order_relaxed);
  give_up();
  return nullptr;
}
void __wrap_free(void*) {}  // three tables in a process's life
char* __wrap_getenv(const char*) { return nullptr; }
void __wrap_abort() {
  give_up();
  __builtin_trap();  // outside of a walk nothing of libunwind runs
}
void __wrap___assert_fail(const char*, const char*, unsigned, const char*) { __wrap_abort(); }
int __wrap_fprintf(FILE*, const char*, ...) { return 0; }
std::size_t __wrap_fwrite(const void*, std::size_t, std::size_t count, FILE*) { return count; }
int __wrap_fflush(FILE*) { return 0; }
int __wrap_pthread_rwlock_rdlock(void*) {
  t_holds_cache = g_cache_lock.acquire();
  if (!t_holds_cache) give_up();
  return 0;
}
int __wrap_pthread_rwlock_wrlock(void* lock) { return __wrap_pthread_rwlock_rdlock(lock); }
int __wrap_pthread_rwlock_unlock(void*) {
  if (t_holds_cache) g_cache_lock.release();
  t_holds_cache = false;
  return 0;
}
}
