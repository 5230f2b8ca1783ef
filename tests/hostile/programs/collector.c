// SPDX-License-Identifier: Apache-2.0
// collector: a program with Boehm's collector. Threads fail in the driver while the main thread collects,
// which stops each of them by a signal and reads its stack.
#define GC_THREADS
#include <dlfcn.h>
#include <gc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef long (*Function)(long, long, long, long, long, long);
static Function g_find;
static atomic_int g_stop;
static atomic_uint g_most;  // calls of one thread: so many of the 900 names have failed

struct Node {
  struct Node* next;
  long value;
};

static void* fail(void* unused) {
  (void)unused;
  long wrong = 0;
  for (unsigned i = 0; !g_stop; ++i) {
    // Held by this thread's stack alone.
    struct Node* volatile list = 0;
    for (long n = 0; n < 50; ++n) {
      struct Node* node = GC_MALLOC(sizeof *node);
      node->next = list;
      node->value = n;
      list = node;
    }
    char name[24];
    snprintf(name, sizeof name, "k%u", i % 900);
    long out = 0;
    g_find((long)&out, 0x70000000, (long)name, 0, 0, 0);
    long expected = 49;
    for (struct Node* node = list; node != 0; node = node->next) wrong += node->value != expected--;
    wrong += expected != -1;
    if (i > g_most) g_most = i;
  }
  return (void*)wrong;
}

int main(void) {
  GC_INIT();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == 0) return 3;
  Function start;
  *(void**)&start = dlsym(driver, "cuInit");
  *(void**)&g_find = dlsym(driver, "cuModuleGetFunction");
  start(0, 0, 0, 0, 0, 0);
  *(volatile int*)dlsym(driver, "plain_driver") = 209;
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, fail, 0);
  for (int i = 0; i < 300 || (g_most < 900 && i < 300000); ++i) GC_gcollect();
  g_stop = 1;
  long wrong = 0;
  for (int i = 0; i < 4; ++i) {
    void* result = 0;
    pthread_join(threads[i], &result);
    wrong += (long)result;
  }
  printf("wrong: %ld\n", wrong);
  return 0;
}
