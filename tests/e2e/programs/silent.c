/* SPDX-License-Identifier: Apache-2.0
 * Linked statically, it cannot be looked into. */
#include <stdio.h>

int main(void) {
  puts("silent");
  return 0;
}
