/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that --help prints, as text, and the scripts of `kshim completion`. The include path is this folder. */
    .section .rodata
.macro page name file
    .global kshim_page_\name
    .hidden kshim_page_\name
kshim_page_\name:
    .incbin "\file"
    .byte 0
.endm
#define KSHIM_COMMAND(name, status) page name name.txt ;
#include "analyzer/cli/commands.def"
    page kshim kshim.txt
    page common common.txt
    page bash kshim.bash
    page zsh kshim.zsh
    page fish kshim.fish
    .section .note.GNU-stack, "", @progbits
