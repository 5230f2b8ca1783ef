// SPDX-License-Identifier: Apache-2.0
// A program without Python, or with what says that it is one: no frames are seen, but for one shape.     asks
// PROBE.so LIBRARY|- SHAPE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef size_t (*probe_fn)(char*, size_t);

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* python = strcmp(argv[2], "-") == 0 ? NULL : dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
  void (*shape)(int) = python != NULL ? (void (*)(int))dlsym(python, "shape") : NULL;
  void* library = dlopen(argv[1], RTLD_NOW);
  const char* names[] = {"probe_python", "probe_python_main"};
  static char room[65536];
  for (int kind = 0; kind <= 10; ++kind) {
    if (shape != NULL) shape(kind);
    for (int i = 0; i < 2; ++i) {
      const char* want =
          i == 0 && kind == atoi(argv[3]) ? "[{\"file\":\"abc\",\"line\":null,\"function\":\"abc\"}]" : "[]";
      const size_t size = ((probe_fn)dlsym(library, names[i]))(room, sizeof room);
      if (size == strlen(want) && memcmp(room, want, size) == 0) continue;
      printf("%d %s: %.*s\n", kind, names[i], (int)size, room);
      return 1;
    }
  }
  puts("as it should");
  return 0;
}
