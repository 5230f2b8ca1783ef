/* SPDX-License-Identifier: Apache-2.0 */
/* Asks whether a library has code of a kernel for this GPU, and loads it only then. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kshim/query.h"

/* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of <cuda.h> */
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

typedef int (*init_function)(unsigned flags);
typedef int (*version_function)(int* version);
typedef int (*attribute_function)(int* value, int attribute, int device);
typedef int (*scale_function)(int n);

/* POSIX: dlsym's result may be a function, which ISO C has no cast for. */
#define LOOK_UP(function, library, name) (*(void**)&(function) = dlsym(library, name), (function) != NULL)

/* What this GPU and its driver are; 0 where there is none. */
static int describe_gpu(struct kshim_question* question) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  init_function init;
  version_function version;
  attribute_function attribute;
  if (driver == NULL || !LOOK_UP(init, driver, "cuInit") || !LOOK_UP(version, driver, "cuDriverGetVersion") ||
      !LOOK_UP(attribute, driver, "cuDeviceGetAttribute"))
    return 0;
  return init(0) == 0 && version(&question->driver) == 0 &&
         attribute(&question->major, CAPABILITY_MAJOR, 0) == 0 &&
         attribute(&question->minor, CAPABILITY_MINOR, 0) == 0;
}

static int scale_on_the_gpu(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  scale_function scale;
  if (library == NULL || !LOOK_UP(scale, library, "fast_scale_all")) {
    printf("guard: %s\n", dlerror());
    return 1;
  }
  return scale(100000);
}

static int scale_on_the_cpu(void) {
  static float data[100000];
  for (size_t i = 0; i < sizeof data / sizeof data[0]; ++i) data[i] *= 0.5F;
  return 0;
}

int main(int argc, char** argv) {
  struct kshim_question question = {.size = sizeof question, .kernel = "fast_scale"};
  struct kshim_answer answer = {.size = sizeof answer};
  char path[4096];
  const char* slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
  const int folder = slash != NULL ? (int)(slash - argv[0]) + 1 : 0;
  snprintf(path, sizeof path, "%.*slibfast.so", folder, argc > 0 ? argv[0] : "");
  question.path = path;
  if (!describe_gpu(&question)) {
    printf("guard: no GPU; on the CPU\n");
    return scale_on_the_cpu();
  }
  switch (kshim_query(&question, &answer)) {
    case KSHIM_CODE_SASS:
    case KSHIM_CODE_JIT:
      printf("guard: fast_scale runs as %s\n", answer.image);
      return scale_on_the_gpu(path);
    default: /* unknown as well: a guard lets nothing through that it is not sure of */
      printf("guard: on the CPU: libfast.so has %s, not sm_%d%d (%s)\n", answer.have, question.major,
             question.minor, answer.reason);
      return scale_on_the_cpu();
  }
}
