/* SPDX-License-Identifier: Apache-2.0
   Stand-ins for functions whose arguments nobody knows: each calls the real one with what it was given and notes the answer.
   At most six arguments are in registers and sixteen more on the stack, which is what the driver's longest functions take. */
        .text
        .set    SLOTS, 4096

        .globl  tracer_slots
        .hidden tracer_slots
        .p2align 4
tracer_slots:
        .set    slot, 0
        .rept   SLOTS
        .p2align 4
        pushq   $slot
        jmp     tracer_common
        .set    slot, slot + 1
        .endr

tracer_common:
        /* (%rsp): the slot; 8(%rsp): return address; from 16(%rsp): arguments on the stack */
        popq    %rax
        pushq   %rbp
        movq    %rsp, %rbp
        subq    $144, %rsp
        movq    %rax, 128(%rsp)
        .set    word, 0
        .rept   16
        movq    16 + 8 * word(%rbp), %r10
        movq    %r10, 8 * word(%rsp)
        .set    word, word + 1
        .endr
        leaq    tracer_real(%rip), %r10
        call    *(%r10, %rax, 8)
        movq    128(%rsp), %rdi
        movq    %rax, 136(%rsp)
        movl    %eax, %esi
        call    tracer_note
        movq    136(%rsp), %rax
        leave
        ret

        .hidden tracer_real
        .hidden tracer_note
        .section .note.GNU-stack, "", @progbits
