/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that was built against interface 1 relies on: sizes and places of the members. */
#include "kshim/query.h"

#define AT(type, member, offset) \
  typedef char at_##type##_##member[offsetof(struct type, member) == (offset) ? 1 : -1]
#define SIZE(type, bytes) typedef char size_##type[sizeof(struct type) == (bytes) ? 1 : -1]

SIZE(kshim_question, 40);
AT(kshim_question, path, 8);
AT(kshim_question, kernel, 16);
AT(kshim_question, major, 24);
AT(kshim_question, minor, 28);
AT(kshim_question, driver, 32);
AT(kshim_question, flags, 36);
SIZE(kshim_answer, 336);
AT(kshim_answer, code, 8);
AT(kshim_answer, reason, 16);
AT(kshim_answer, text, 24);
AT(kshim_answer, modules, 32);
AT(kshim_answer, sass, 40);
AT(kshim_answer, jit, 48);
AT(kshim_answer, lacking, 56);
AT(kshim_answer, image, 64);
AT(kshim_answer, have, 80);

int header_is_c(void);
int header_is_c(void) { return KSHIM_CODE_NONE; }
