// SPDX-License-Identifier: Apache-2.0
// A static program, linked with -static, that uses the driver: IMAGE TIMES. It asks for a kernel of the
// image, prints what the driver answers, and ends with 1 where that is an error.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*Init)(unsigned);
typedef int (*Load)(void**, const void*, void*, void*, unsigned, void*, void*, unsigned);
typedef int (*Get)(void**, void*, const char*);

int main(int count, char** words) {
  static char image[1 << 20];
  FILE* const file = count == 3 ? fopen(words[1], "rb") : NULL;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (file == NULL || driver == NULL || fread(image, 1, sizeof image, file) == 0) return 9;
  int result = ((Init)dlsym(driver, "cuInit"))(0);
  const Load load = (Load)dlsym(driver, "cuLibraryLoadData");
  const Get get = (Get)dlsym(driver, "cuLibraryGetKernel");
  for (int times = atoi(words[2]); times > 0 && result % 209 == 0; --times) {
    void* library = NULL;
    void* kernel = NULL;
    result = load(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (result == 0) result = get(&kernel, library, "scale");
  }
  printf("%d\n", result);
  return result != 0;
}
