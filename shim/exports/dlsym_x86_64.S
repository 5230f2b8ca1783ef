/* SPDX-License-Identifier: Apache-2.0
   dlsym and dlvsym as tail jumps: libc takes the return address for the caller, on which RTLD_NEXT and RTLD_DEFAULT
   depend, so nothing may stand between the caller and libc. Only names that begin with "cu", "nv" or "__" are looked at
   first (__cudaRegisterFatBinary, __nvJitLinkCreate_13_0).
   Exported with both version nodes of x86-64 glibc: old binaries ask for GLIBC_2.2.5, new ones for GLIBC_2.34. */
        .text

/* THUNK name, real: entry `kshim_abi_\name`, jumps through the pointer `\real`.
   %r8-%r11 carry nothing here; %rdx is dlvsym's version. */
.macro THUNK name, real, has_version
        .globl  kshim_abi_\name
        .type   kshim_abi_\name, @function
        .p2align 4
kshim_abi_\name:
        .cfi_startproc
        endbr64
        cmpb    $'c', (%rsi)
        jne     7f
        cmpb    $'u', 1(%rsi)
        je      3f
        jmp     1f
7:      cmpb    $'_', (%rsi)
        jne     8f
        cmpb    $'_', 1(%rsi)
        je      3f
        jmp     1f
8:      cmpb    $'n', (%rsi)
        jne     1f
        cmpb    $'v', 1(%rsi)
        je      3f
1:      mov     \real(%rip), %rax
        test    %rax, %rax
        je      2f
        jmp     *%rax
        /* The first call of all. */
2:      push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        push    %rdx
        .cfi_adjust_cfa_offset 8
        call    kshim_find_real_lookups
        pop     %rdx
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        mov     \real(%rip), %rax
        test    %rax, %rax
        je      5f
        jmp     *%rax
3:      cmpq    $0, \real(%rip)
        je      4f
6:      push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        push    %rdx
        .cfi_adjust_cfa_offset 8
        .if     \has_version
        mov     %rdx, %rcx
        .else
        xor     %ecx, %ecx
        .endif
        mov     24(%rsp), %rdx
        call    kshim_look_up
        mov     %rdx, %rcx
        pop     %rdx
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        test    %rcx, %rcx
        je      1b
        ret
4:      push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        push    %rdx
        .cfi_adjust_cfa_offset 8
        call    kshim_find_real_lookups
        pop     %rdx
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        cmpq    $0, \real(%rip)
        jne     6b
5:      xor     %eax, %eax
        ret
        .cfi_endproc
        .size   kshim_abi_\name, . - kshim_abi_\name
        .globl  kshim_abi_old_\name
        .set    kshim_abi_old_\name, kshim_abi_\name
        .symver kshim_abi_\name, \name@@GLIBC_2.34
        .symver kshim_abi_old_\name, \name@GLIBC_2.2.5
.endm

        .hidden kshim_real_dlsym
        .hidden kshim_real_dlvsym
        .hidden kshim_look_up
        .hidden kshim_find_real_lookups

        THUNK   dlsym, kshim_real_dlsym, 0
        THUNK   dlvsym, kshim_real_dlvsym, 1

        .section .note.GNU-stack, "", @progbits

        /* GNU_PROPERTY_X86_FEATURE_1_AND: IBT, SHSTK */
        .section .note.gnu.property, "a", @note
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 3, 0
