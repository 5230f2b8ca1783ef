// SPDX-License-Identifier: Apache-2.0
// A preload that notes every call of a driver that was found by dlsym or cuGetProcAddress: "THREAD NAME
// RESULT" a line into the file TRACER_OUT. For tests on real devices (tools/gpu_facts), where the simulator's
// own trace is not to be had; small, so that it builds anywhere, and used on both sides of a comparison.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 4096
__attribute__((visibility("hidden"))) void* tracer_real[SLOTS];
__attribute__((visibility("hidden"))) extern char tracer_slots[];
static char g_names[SLOTS][96];
static int g_count;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

typedef void* (*dlsym_fn)(void*, const char*);
typedef int (*get_fn)(const char*, void**, int, unsigned long long, int*);
typedef int (*old_get_fn)(const char*, void**, int, unsigned long long);
static get_fn g_get;
static old_get_fn g_old_get;

static void write_line(const char* text) {
  static int file = -2;
  if (file == -2) {
    const char* path = getenv("TRACER_OUT");
    file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  if (file < 0) return;
  const ssize_t written = write(file, text, strlen(text));
  (void)written;
}

__attribute__((visibility("hidden"))) void tracer_note(unsigned slot, int result) {
  const int error = errno;
  char line[160];
  snprintf(line, sizeof line, "%ld %s %d\n", (long)syscall(SYS_gettid), g_names[slot], result);
  write_line(line);
  errno = error;
}

/// One slot a function and name: the same function looked up twice under one name has one.
static void* stand_in(void* real, const char* name) {
  pthread_mutex_lock(&g_lock);
  int slot = 0;
  while (slot < g_count && (tracer_real[slot] != real || strncmp(g_names[slot], name, 95) != 0)) ++slot;
  if (slot == g_count && slot < SLOTS) {
    tracer_real[slot] = real;
    snprintf(g_names[slot], sizeof g_names[slot], "%s", name);
    ++g_count;
  }
  pthread_mutex_unlock(&g_lock);
  return slot == SLOTS ? real : tracer_slots + 16 * slot;
}

static int in_driver(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == NULL) return 0;
  const char* slash = strrchr(info.dli_fname, '/');
  const char* name = slash == NULL ? info.dli_fname : slash + 1;
  return strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libnvidia-", 10) == 0;
}

static void replace(const char* symbol, void** out, int version, unsigned long long flags);

static int traced_get(const char* symbol, void** out, int version, unsigned long long flags, int* status) {
  const int result = g_get(symbol, out, version, flags, status);
  if (result == 0) replace(symbol, out, version, flags);
  return result;
}
static int traced_old_get(const char* symbol, void** out, int version, unsigned long long flags) {
  const int result = g_old_get(symbol, out, version, flags);
  if (result == 0) replace(symbol, out, version, flags);
  return result;
}

static void replace(const char* symbol, void** out, int version, unsigned long long flags) {
  if (out == NULL || *out == NULL || symbol == NULL) return;
  if (strcmp(symbol, "cuGetProcAddress") == 0 || strcmp(symbol, "cuGetProcAddress_v2") == 0) {
    if (version >= 12000) {
      g_get = (get_fn)*out;
      *out = (void*)traced_get;
    } else {
      g_old_get = (old_get_fn)*out;
      *out = (void*)traced_old_get;
    }
    return;
  }
  char name[96];
  snprintf(name, sizeof name, "%s%s", symbol, (flags & 2) != 0 ? "/thread" : "");
  *out = stand_in(*out, name);
}

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  static dlsym_fn real;
  if (real == NULL) {
    real = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (real == NULL) real = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  }
  // RTLD_NEXT is about the caller: nothing may stand between it and libc.
  if (handle == RTLD_NEXT || strncmp(name, "cu", 2) != 0) return real(handle, name);
  const void* caller = __builtin_return_address(0);
  void* found = real(handle, name);
  if (in_driver(caller)) {
    char line[160];
    snprintf(line, sizeof line, "0 driver-dlsym:%s %d\n", name, found != NULL);
    write_line(line);
    return found;
  }
  if (found == NULL || !in_driver(found)) return found;
  if (strcmp(name, "cuGetProcAddress_v2") == 0) {
    g_get = (get_fn)found;
    return (void*)traced_get;
  }
  if (strcmp(name, "cuGetProcAddress") == 0) {
    g_old_get = (old_get_fn)found;
    return (void*)traced_old_get;
  }
  return stand_in(found, name);
}
