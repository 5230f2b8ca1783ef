// SPDX-License-Identifier: Apache-2.0
// box NUMBER ERRNO PROGRAM [ARGUMENT...]: starts it in a sandbox that answers one system call with that
// error.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int install(unsigned flags, const struct sock_filter* rows, size_t count) {
  const struct sock_fprog filter = {(unsigned short)count, (struct sock_filter*)rows};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const unsigned number = (unsigned)atoi(argv[1]);
  const struct sock_filter rows[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  if (install(0, rows, sizeof rows / sizeof rows[0]) < 0) return 77;
  execvp(argv[3], argv + 3);
  return 1;
}
