/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of knowledge/, as text. The include path is that folder. */
    .section .rodata
.macro table name file
    .global kshim_knowledge_\name
    .hidden kshim_knowledge_\name
    .global kshim_knowledge_\name\()_end
    .hidden kshim_knowledge_\name\()_end
kshim_knowledge_\name:
    .incbin "\file"
kshim_knowledge_\name\()_end:
    .byte 0
.endm
    table sources sources.json
    table toolkits toolkits.json
    table gpus gpus.json
    table libraries libraries.json
    table wheels wheels.json
    table programs programs.json
    table messages messages.json
    table fixes fixes.json
    .section .note.GNU-stack, "", @progbits
