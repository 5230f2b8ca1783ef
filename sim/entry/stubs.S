/* SPDX-License-Identifier: Apache-2.0
 * The exported functions: each jumps through its slot, which table.cpp fills with the implementation, the tracing
 * wrapper or the "not supported" answer. A jump, so that the arguments pass untouched whatever they are.
 * kshim_sim_stubs holds their addresses, so that cuGetProcAddress answers what dlsym answers even under a preload that
 * defines the same names.
 */
        .text
        .set kshim_row, 0

#if defined(__x86_64__)
#define STUB(symbol)                                            \
        .globl symbol;                                          \
        .type symbol, @function;                                \
        .p2align 4;                                             \
symbol: .cfi_startproc;                                         \
        endbr64;                                                \
        jmp *(kshim_sim_slots + 8 * kshim_row)(%rip);           \
        .cfi_endproc;                                           \
        .size symbol, . - symbol;                               \
        ADDRESS(symbol)
#elif defined(__aarch64__)
#define STUB(symbol)                                            \
        .globl symbol;                                          \
        .type symbol, %function;                                \
        .p2align 4;                                             \
symbol: .cfi_startproc;                                         \
        hint 34; /* bti c */                                    \
        adrp x16, kshim_sim_slots + 8 * kshim_row;              \
        add x16, x16, :lo12:(kshim_sim_slots + 8 * kshim_row);  \
        ldr x16, [x16];                                         \
        br x16;                                                 \
        .cfi_endproc;                                           \
        .size symbol, . - symbol;                               \
        ADDRESS(symbol)
#else
#error "no entry stubs for this processor"
#endif

#define ADDRESS(symbol)                                         \
.Lstub_##symbol = symbol;                                       \
        .pushsection .data.rel.ro, "aw";                        \
        .quad .Lstub_##symbol;                                  \
        .popsection;                                            \
        .set kshim_row, kshim_row + 1

        .hidden kshim_sim_slots
        .pushsection .data.rel.ro, "aw"
        .p2align 3
        .globl kshim_sim_stubs
        .hidden kshim_sim_stubs
kshim_sim_stubs:
        .popsection

#define KSHIM_SIM_ENTRY(symbol, name, introduced) STUB(symbol)
#define KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base) STUB(symbol)
#include "entry_points.def"

        .section .note.GNU-stack, "", %progbits
