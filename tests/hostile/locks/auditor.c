// SPDX-License-Identifier: Apache-2.0
// An auditor (LD_AUDIT) that does not come back from hearing that a certain library was opened.
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)space, (void)cookie;
  while (strstr(map->l_name, "libstops_auditor.so") != 0) syscall(SYS_ppoll, 0, 0, 0, 0, 8);
  return 0;
}
