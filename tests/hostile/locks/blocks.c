// SPDX-License-Identifier: Apache-2.0
// A library whose constructor does not return: dlopen() holds the dynamic linker's lock meanwhile.
extern void cell_hold_now(void);
__attribute__((constructor)) static void begin(void) { cell_hold_now(); }
