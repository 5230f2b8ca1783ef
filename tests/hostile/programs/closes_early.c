// SPDX-License-Identifier: Apache-2.0
// A library whose constructor starts a thread that opens and closes libraries, and a program that is linked
// to it. CLOSES_FOLDER: where the libraries l0.so, l1.so and so on are; without it, the program prints
// glibc's version. CLOSES_LIBRARY: the library.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void stop_closing(void);

#if defined(CLOSES_LIBRARY)
enum { kLibraries = 32 };
static volatile int g_rounds, g_stop;
static pthread_t g_thread;

static void* open_and_close(void* folder) {
  for (; !g_stop; ++g_rounds) {
    void* handles[kLibraries];
    for (int i = 0; i < kLibraries; ++i) {
      char path[4096];
      snprintf(path, sizeof path, "%s/l%d.so", (const char*)folder, i);
      handles[i] = dlopen(path, RTLD_NOW);
    }
    for (int i = kLibraries - 1; i >= 0; --i)
      if (handles[i] != NULL) dlclose(handles[i]);
  }
  return NULL;
}
__attribute__((constructor)) static void begin(void) {
  if (getenv("CLOSES_FOLDER") == NULL) return;
  if (pthread_create(&g_thread, NULL, open_and_close, getenv("CLOSES_FOLDER")) != 0) abort();
  while (g_rounds == 0) usleep(100);
}
void stop_closing(void) {
  g_stop = 1;
  pthread_join(g_thread, NULL);
}
#else
int main(void) {
  if (getenv("CLOSES_FOLDER") == NULL) return puts(gnu_get_libc_version()) < 0;
  stop_closing();
  puts("stopped");
  return 0;
}
#endif
