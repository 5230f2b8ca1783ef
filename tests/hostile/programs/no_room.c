// SPDX-License-Identifier: Apache-2.0
// A program that is linked to the driver and has no address space left when it first calls it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int cuInit(unsigned flags);
int cuDeviceGet(int* device, int number);
int cuModuleGetFunction(void** function, void* module, const char* name);

int main(void) {
  char line[128];
  struct rlimit limit = {0, RLIM_INFINITY};
  FILE* const status = fopen("/proc/self/status", "r");
  while (status != NULL && limit.rlim_cur == 0 && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "VmSize:", 7) == 0) limit.rlim_cur = strtoul(line + 7, NULL, 10) * 1024;
  if (limit.rlim_cur == 0 || setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  int device = -1;
  void* function = NULL;
  const int answers[] = {cuInit(0), cuDeviceGet(&device, 0), cuModuleGetFunction(&function, NULL, "kernel")};
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_AS, &limit);
  printf("%d %d %d, later %d\n", answers[0], answers[1], answers[2], cuDeviceGet(&device, 0));
  return 0;
}
