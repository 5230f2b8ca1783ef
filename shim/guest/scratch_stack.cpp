// SPDX-License-Identifier: Apache-2.0
#include "guest/scratch_stack.h"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>

#include "guest/errno_keeper.h"
#include "guest/process_generation.h"
#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "guest/timed_lock.h"

/// ld.so's: where the main thread's stack begins. A weak reference: musl has none of that name.
extern "C" [[gnu::weak]] void* __libc_stack_end;

// kshim_call_on_stack(work, context, top): the frame pointer says where the caller's frame is, so that stack
// walks, ours and a debugger's, find the way from the one stack to the other.
extern "C" [[gnu::visibility("hidden")]] void kshim_call_on_stack(void (*work)(const void*),
                                                                  const void* context, void* top) noexcept;
#if defined(__x86_64__)
asm(R"(
        .pushsection .text
        .globl  kshim_call_on_stack
        .hidden kshim_call_on_stack
        .type   kshim_call_on_stack, @function
        .p2align 4
kshim_call_on_stack:
        .cfi_startproc
        endbr64
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        mov     %rdx, %rsp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     %rbp, %rsp
        pop     %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   kshim_call_on_stack, . - kshim_call_on_stack
        .popsection
)");
#elif defined(__aarch64__)
asm(R"(
        .pushsection .text
        .globl  kshim_call_on_stack
        .hidden kshim_call_on_stack
        .type   kshim_call_on_stack, %function
        .p2align 4
kshim_call_on_stack:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        mov     sp, x2
        mov     x9, x0
        mov     x0, x1
        blr     x9
        mov     sp, x29
        .cfi_def_cfa_register sp
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   kshim_call_on_stack, . - kshim_call_on_stack
        .popsection
)");
#else
#error "how to change stacks on this architecture is not known"
#endif

namespace kshim::shim {
namespace {

constexpr std::size_t kGuard = 65536;  // the largest page of an aarch64 kernel
constexpr std::size_t kNeeded = std::size_t{64} << 10U;
// The driver is asked things from here, and a handler of the host's that has no stack of its own runs here.
constexpr std::size_t kSize = std::size_t{256} << 10U;
constexpr std::size_t kCount = 16;

struct Stack {
  alignas(kGuard) std::byte bytes[kSize];
};
Stack g_stacks[kCount];  // pages that nobody touches take no memory
std::atomic<bool> g_guarded[kCount];
/// Whose it is, as thread_mark() says. What another thread of the parent had, a fork's child takes over; who
/// comes with a stack in his name has jumped out of what he did there (Busy keeps out whoever interrupted
/// it).
std::atomic<std::uint64_t> g_users[kCount];

/// Of the main thread's stack, what was seen to be there. Asking is a system call a page.
constinit thread_local std::uintptr_t t_low = 0;  // 0: nothing was asked yet
constexpr std::uintptr_t kNotMain = ~std::uintptr_t{0};

/// Whether this much lies below the frame. Known of the main thread alone: ld.so saw where its stack begins,
/// and it grows when the kernel itself reads below it, up to RLIMIT_STACK, where a guard follows. Another
/// thread's may be memory of the host's (pthread_attr_setstack) with somebody's data below it, and so may be
/// a fiber's or a signal handler's: what can be read there is not room.
bool has_room(std::uintptr_t frame) noexcept {
  constexpr std::uintptr_t kDeepest = std::uintptr_t{64} << 20U;  // 16,384 questions
  const ErrnoKeeper keeper;
  stack_t alternate{};
  if (frame <= kNeeded || raw::signal_stack(alternate) != 0) return false;
  if ((alternate.ss_flags & SS_ONSTACK) != 0)
    return frame - reinterpret_cast<std::uintptr_t>(alternate.ss_sp) >= kNeeded;
  if (t_low == 0 && (thread_id() != process_id() || &__libc_stack_end == nullptr)) t_low = kNotMain;
  if (t_low == kNotMain) return false;
  const auto top = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  const std::uintptr_t low = frame - kNeeded;
  if (frame >= top || top - low > kDeepest) return false;
  if (low >= t_low && t_low != 0) return true;
  const std::uintptr_t known = t_low != 0 && frame >= t_low ? t_low : top;
  if (readable_bytes(low, known - low) != known - low) return false;
  t_low = low;
  return true;
}

std::size_t take(std::uint64_t mark) noexcept {
  for (std::size_t i = 0; i < kCount; ++i) {
    std::uint64_t user = g_users[i].load(std::memory_order_relaxed);
    const bool free = user == mark || !is_of_this_process(user);
    if (free && g_users[i].compare_exchange_strong(user, mark, std::memory_order_acquire)) return i;
  }
  return kCount;
}

}  // namespace

bool is_on_own_stack(std::uintptr_t frame) noexcept {
  return frame - reinterpret_cast<std::uintptr_t>(g_stacks) < sizeof g_stacks;
}

[[gnu::noinline]] bool run_with_room(void (*work)(const void*), const void* context) noexcept {
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (is_on_own_stack(frame) || has_room(frame)) {
    work(context);
    return true;
  }
  const ErrnoKeeper keeper;
  const std::uint64_t mark = thread_mark();
  Patience patience;
  std::size_t taken = take(mark);
  while (taken == kCount && patience.wait()) taken = take(mark);
  if (taken == kCount) return false;
  // The lowest page stays away: whoever needs more than there is must not write into what lies before.
  if (!g_guarded[taken].exchange(true, std::memory_order_relaxed))
    raw::protect(reinterpret_cast<std::uintptr_t>(g_stacks[taken].bytes), kGuard, PROT_NONE);
  kshim_call_on_stack(work, context, g_stacks[taken].bytes + kSize);
  g_users[taken].store(0, std::memory_order_release);
  return true;
}

}  // namespace kshim::shim
