// SPDX-License-Identifier: Apache-2.0
// A library that brings device code and is unloaded again.
extern const char kshim_test_image[];
__asm__(".section .rodata\n.globl kshim_test_image\n.p2align 4\nkshim_test_image:\n.incbin \"" KSHIM_IMAGE
        "\"\n.previous");
