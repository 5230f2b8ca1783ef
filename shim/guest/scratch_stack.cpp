// SPDX-License-Identifier: Apache-2.0
#include "guest/scratch_stack.h"

#include <sys/mman.h>

#include <cstdint>

#include "guest/signals.h"
#include "guest/syscalls.h"

// kshim_call_on_stack(work, context, top): the frame pointer leads to the caller's frame, so that unwinders
// (the shim's, a debugger's) find the way from one stack to the other.
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

constexpr std::uintptr_t kMaxPageBytes = 65536;  // of an aarch64 kernel
// The stack of the shim's that this thread is on, or was on last.
constinit thread_local std::uintptr_t t_low = 0;
constinit thread_local std::uintptr_t t_high = 0;

using NewStack = Stack<std::size_t{192} << 10U>;

}  // namespace

namespace stacks {

void protect_end(std::byte* memory) noexcept {
  raw::protect(reinterpret_cast<std::uintptr_t>(memory), kMaxPageBytes, PROT_NONE);
}

void call(FunctionRef<void()> work, std::byte* memory, std::size_t size) noexcept {
  const std::uintptr_t low = t_low;
  const std::uintptr_t high = t_high;
  t_low = reinterpret_cast<std::uintptr_t>(memory);
  t_high = (t_low + size - 1) & ~std::uintptr_t{63};  // unwinders look at the page that it lies in
  kshim_call_on_stack([](const void* of) { (*static_cast<const FunctionRef<void()>*>(of))(); }, &work,
                      reinterpret_cast<void*>(t_high));
  t_low = low;
  t_high = high;
}

}  // namespace stacks

bool is_on_own_stack(std::uintptr_t frame) noexcept { return frame >= t_low && frame < t_high; }

void on_new_stack(FunctionRef<void()> work) noexcept {
  if (is_on_own_stack(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) {
    work();
    return;
  }
  const ScopedBlockSignals held;
  void* const memory = raw::map_memory(sizeof(NewStack), MAP_NORESERVE);
  if (memory == nullptr) {
    work();
    return;
  }
  auto* const stack = static_cast<NewStack*>(memory);
  stack->prepare();
  stack->call(work);
  raw::unmap_memory(memory, sizeof(NewStack));
}

}  // namespace kshim::shim
