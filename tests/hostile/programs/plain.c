// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of CUDA; linked with musl, and statically with glibc.
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  printf("%s: %d\n", argc > 1 ? argv[1] : "plain", argc);
  fprintf(stderr, "on stderr\n");
  fflush(stdout);
  if (argc > 1) _exit(3);
  return 4;
}
