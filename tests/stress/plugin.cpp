// SPDX-License-Identifier: Apache-2.0
// A library with device code that comes and goes: its image lies in a file that may be mapped elsewhere next
// time.
asm(".section .nv_fatbin,\"a\"\n.balign 8\nkImageStart:\n.incbin \"" KSHIM_IMAGE "\"\n.previous");
extern "C" const char kImageStart[];
extern "C" const void* image();
extern "C" const void* image() { return kImageStart; }
