// SPDX-License-Identifier: Apache-2.0
#include "guest/scratch_stack.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

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

constexpr std::uintptr_t kLargestPage = 65536;  // of an aarch64 kernel
std::atomic<std::uintptr_t> g_low{0};

}  // namespace

void ScratchStack::prepare() noexcept {
  const auto low = (reinterpret_cast<std::uintptr_t>(bytes_) + kLargestPage - 1) & ~(kLargestPage - 1);
  raw::protect(low, kLargestPage, PROT_NONE);
  g_low.store(low, std::memory_order_relaxed);
}

void ScratchStack::call(void (*work)(const void*), const void* context) noexcept {
  const auto top = reinterpret_cast<std::uintptr_t>(bytes_ + sizeof bytes_) & ~std::uintptr_t{63};
  kshim_call_on_stack(work, context, reinterpret_cast<void*>(top));
}

bool is_on_scratch_stack(std::uintptr_t frame) noexcept {
  const std::uintptr_t low = g_low.load(std::memory_order_relaxed);
  return low != 0 && frame - low < sizeof(ScratchStack);
}

}  // namespace kshim::shim
