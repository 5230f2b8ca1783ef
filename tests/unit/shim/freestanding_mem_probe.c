/* SPDX-License-Identifier: Apache-2.0
 * The shim's own memory functions under names that no sanitizer and no libc knows. */
#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define __memcpy_chk own_memcpy_chk
#define memcmp own_memcmp
#define bcmp own_bcmp
#define memchr own_memchr
#define strlen own_strlen
#define strnlen own_strnlen
#define strncmp own_strncmp
#include "guest/freestanding_mem.c"
