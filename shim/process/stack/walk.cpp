// SPDX-License-Identifier: Apache-2.0
#include "process/stack/walk.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "guest/safe_memory.h"
#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "process/loaded_objects.h"

#if defined(__aarch64__)
// clang has no __builtin_setjmp for aarch64. kshim_walk_guarded(walk, context, way_out) calls walk(context)
// and returns 0; kshim_walk_given_up(*way_out), called from within, makes it return 1. The registers that a
// call keeps (x19 to x30, d8 to d15) lie in its frame, which *way_out points to.
extern "C" [[gnu::visibility("hidden")]] int kshim_walk_guarded(void (*walk)(void*), void* context,
                                                                void** way_out) noexcept;
extern "C" [[noreturn, gnu::visibility("hidden")]] void kshim_walk_given_up(void* way_out) noexcept;
asm(R"(
        .pushsection .text
        .globl  kshim_walk_guarded
        .hidden kshim_walk_guarded
        .type   kshim_walk_guarded, %function
        .globl  kshim_walk_given_up
        .hidden kshim_walk_given_up
        .type   kshim_walk_given_up, %function
        .p2align 4
kshim_walk_guarded:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-160]!
        .cfi_def_cfa_offset 160
        .cfi_offset x29, -160
        .cfi_offset x30, -152
        mov     x29, sp
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x2]
        mov     x9, x0
        mov     x0, x1
        blr     x9
        mov     w0, #0
        ldp     x29, x30, [sp], #160
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   kshim_walk_guarded, . - kshim_walk_guarded
        .p2align 4
kshim_walk_given_up:
        .cfi_startproc
        hint    #34
        mov     sp, x0
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        mov     w0, #1
        ldp     x29, x30, [sp], #160
        ret
        .cfi_endproc
        .size   kshim_walk_given_up, . - kshim_walk_given_up
        .popsection
)");
#endif

namespace kshim::shim {
namespace {

#if defined(__aarch64__)
constinit thread_local void* t_way_out = nullptr;
#else
constinit thread_local void** t_way_out = nullptr;
#endif
std::atomic<bool> g_off{false};

[[gnu::noinline]] void give_up() noexcept {
#if defined(__aarch64__)
  if (t_way_out != nullptr) kshim_walk_given_up(t_way_out);
#else
  if (t_way_out != nullptr) __builtin_longjmp(t_way_out, 1);
#endif
}

/// Calls run(context), which give_up() may end. No local is read after the jump: its value would be
/// undefined.
[[gnu::noinline]] bool run_until_given_up(void (*run)(void*), void* context) noexcept {
#if defined(__aarch64__)
  return kshim_walk_guarded(run, context, &t_way_out) == 0;
#else
  void* registers[8];  // the compiler's: five words
  if (__builtin_setjmp(registers) != 0) return false;
  t_way_out = registers;
  run(context);
  return true;
#endif
}

/// Whether words on a stack can be read. Words of a page that was read before can.
class StackPages {
 public:
  bool can_read(std::uintptr_t address) noexcept {
    constexpr std::uintptr_t kPage = 4096;
    const std::uintptr_t first = address / kPage;
    const std::uintptr_t last = (address + sizeof(std::uintptr_t) - 1) / kPage;
    if (first == page_ && last == page_) return true;
    std::uintptr_t word = 0;
    if (!read_memory(address, &word, sizeof word)) return false;
    page_ = last;
    return true;
  }

 private:
  std::uintptr_t page_ = 0;
};

struct Walk {
  bool (*visit)(void* context, const Frame& frame);
  void* context;
};

// A stack pointer that does not grow means that a frame was misread (hand-written assembly, JIT code): going
// on from there could touch memory that is not there.
void walk(void* given) noexcept {
  const Walk& out = *static_cast<const Walk*>(given);
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != UNW_ESUCCESS || unw_init_local(&cursor, &context) != UNW_ESUCCESS) return;
  StackPages pages;
  unw_word_t last_stack = 0;
  while (unw_step(&cursor) > 0) {
    unw_word_t address = 0;
    unw_word_t stack = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != UNW_ESUCCESS || address == 0) return;
    if (unw_get_reg(&cursor, UNW_REG_SP, &stack) != UNW_ESUCCESS) return;
    // The shim's frames may be on two stacks (scratch_stack.h); the host's are on one.
    if (stack <= last_stack && !(is_shim(address) || is_on_own_stack(last_stack))) return;
    if (!pages.can_read(stack)) return;
    last_stack = stack;
    if (!out.visit(out.context, {address, stack, unw_is_signal_frame(&cursor) > 0})) return;
  }
}

}  // namespace

// All signals are blocked for the whole walk: a handler that jumps out (siglongjmp) would leave libunwind's
// table locked.
bool guarded_walk(void (*walk)(void*), void* context) noexcept {
  if (g_off.load(std::memory_order_relaxed)) return false;
  const ScopedBlockSignals held;
  const bool whole = run_until_given_up(walk, context);
  t_way_out = nullptr;
  return whole;
}

void walk_stack(bool (*visit)(void* context, const Frame& frame), void* context) noexcept {
  Walk given{visit, context};
  guarded_walk(walk, &given);
}

}  // namespace kshim::shim

// Replacements for the libc functions that libunwind calls (--wrap). None of them is exported.
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
int __wrap_snprintf(char* to, std::size_t room, const char*, ...);
extern FILE* __wrap_stderr;
int __wrap_pthread_rwlock_rdlock(void*);
int __wrap_pthread_rwlock_wrlock(void*);
int __wrap_pthread_rwlock_unlock(void*);

/// libunwind's table of frame descriptions grows by a factor of four, for files without .eh_frame_hdr.
/// libunwind does not check for a null pointer: without memory, the walk is abandoned.
void* __wrap_malloc(std::size_t size) {
  void* memory = raw::map_memory(size);
  if (memory != nullptr) return memory;
  g_off.store(true, std::memory_order_relaxed);
  give_up();
  return nullptr;
}
void __wrap_free(void*) {}  // at most three tables in a process
char* __wrap_getenv(const char*) { return nullptr; }
void __wrap_abort() {
  give_up();
  __builtin_trap();  // outside of a walk nothing of libunwind runs
}
void __wrap___assert_fail(const char*, const char*, unsigned, const char*) { __wrap_abort(); }
int __wrap_fprintf(FILE*, const char*, ...) { return 0; }
std::size_t __wrap_fwrite(const void*, std::size_t, std::size_t count, FILE*) { return count; }
int __wrap_fflush(FILE*) { return 0; }
FILE* __wrap_stderr = nullptr;  // the stand-ins above ignore it
/// For the name of a register or of a procedure, which are not asked for.
int __wrap_snprintf(char* to, std::size_t room, const char*, ...) {
  if (room != 0) to[0] = 0;
  return 0;
}
// One thread walks at a time: under the shim's lock.
int __wrap_pthread_rwlock_rdlock(void*) { return 0; }
int __wrap_pthread_rwlock_wrlock(void*) { return 0; }
int __wrap_pthread_rwlock_unlock(void*) { return 0; }
}
