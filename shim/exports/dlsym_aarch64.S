/* SPDX-License-Identifier: Apache-2.0
   dlsym and dlvsym as tail jumps, for the reasons given in dlsym_x86_64.S. The caller is the link register x30.
   aarch64 glibc has the version nodes GLIBC_2.17 and GLIBC_2.34. */
        .text

.macro THUNK name, real, has_version
        .globl  kshim_abi_\name
        .type   kshim_abi_\name, %function
        .p2align 4
kshim_abi_\name:
        .cfi_startproc
        hint    #34                     /* bti c */
        adrp    x16, \real
        ldr     x16, [x16, #:lo12:\real]
        cbz     x16, 3f
        ldrb    w17, [x1]
        cmp     w17, #'c'
        b.ne    5f
        ldrb    w17, [x1, #1]
        cmp     w17, #'u'
        b.eq    2f
        br      x16
5:      cmp     w17, #'_'
        b.ne    6f
        ldrb    w17, [x1, #1]
        cmp     w17, #'_'
        b.eq    2f
        br      x16
6:      cmp     w17, #'n'
        b.ne    1f
        ldrb    w17, [x1, #1]
        cmp     w17, #'v'
        b.eq    2f
1:      br      x16
2:      stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -48
        .cfi_offset 30, -40
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        .if     \has_version
        mov     x3, x2
        .else
        mov     x3, xzr
        .endif
        mov     x2, x30
        bl      kshim_look_up
        cbnz    x1, 4f
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        adrp    x16, \real
        ldr     x16, [x16, #:lo12:\real]
        br      x16
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -48
        .cfi_offset 30, -40
4:      ldp     x29, x30, [sp], #48
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        ret
        /* The first call of all. */
3:      stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -48
        .cfi_offset 30, -40
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        bl      kshim_find_real_lookups
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        adrp    x16, \real
        ldr     x16, [x16, #:lo12:\real]
        cbnz    x16, kshim_abi_\name
        mov     x0, xzr
        ret
        .cfi_endproc
        .size   kshim_abi_\name, . - kshim_abi_\name
        .globl  kshim_abi_old_\name
        .set    kshim_abi_old_\name, kshim_abi_\name
        .symver kshim_abi_\name, \name@@GLIBC_2.34
        .symver kshim_abi_old_\name, \name@GLIBC_2.17
.endm

        .hidden kshim_real_dlsym
        .hidden kshim_real_dlvsym
        .hidden kshim_look_up
        .hidden kshim_find_real_lookups

        THUNK   dlsym, kshim_real_dlsym, 0
        THUNK   dlvsym, kshim_real_dlvsym, 1

        .section .note.GNU-stack, "", %progbits

        /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI; a link register that is saved is not signed here, so no PAC */
        .section .note.gnu.property, "a", %note
        .p2align 3
        .word   4, 16, 5
        .asciz  "GNU"
        .word   0xc0000000, 4, 1, 0
