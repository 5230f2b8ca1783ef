// SPDX-License-Identifier: Apache-2.0
// A program and its library that use the driver before main() and after it, when the shim has not begun yet
// or has ended already. EARLY_LIBRARY: the library.
#include <stdio.h>

extern int plain_driver[];  // PlainSettings::answer comes first
long cuInit(unsigned flags);
long cuLaunchKernel(void* function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
                    unsigned g, void* h, void** i, void** j);

static void use(const char* when) {
  *(volatile int*)plain_driver = 0;
  const long init = cuInit(0);
  *(volatile int*)plain_driver = 209;
  const long launch = cuLaunchKernel(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  printf("%s: %ld %ld\n", when, init, launch);
  fflush(stdout);
}

#if defined(EARLY_LIBRARY)
void early(void);
void early(void) {}
__attribute__((constructor(101))) static void begin(void) { use("the library's constructor"); }
__attribute__((destructor(101))) static void end(void) { use("the library's destructor"); }
#else
void early(void);
static void before(int argc, char** argv, char** environment) {
  (void)argc, (void)argv, (void)environment;
  use("before all constructors");
}
__attribute__((section(".preinit_array"), used)) static void (*g_before)(int, char**, char**) = before;
__attribute__((destructor)) static void end(void) { use("the program's destructor"); }
int main(void) {
  early();
  use("main");
  return 0;
}
#endif
