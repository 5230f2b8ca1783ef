/* SPDX-License-Identifier: Apache-2.0 */
/* As COPY: a library with the version node of libnvrtc.so.12 that answers its own number (not 5 or 6, which
   NVRTC gives to architectures). As USER: a library linked to one such copy, that calls it. As program:
   several copies in one process, reached by linkage and by dlsym; the one that answers must not depend on
   what else is loaded. */
#if defined(COPY)

int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  (void)program, (void)count, (void)options;
  return COPY;
}

#elif defined(USER)

int nvrtcCompileProgram(void* program, int count, const char* const* options);
int call(void) {
  volatile int answer = nvrtcCompileProgram(0, 0, 0);
  return answer;
}
/* As a last call, which compilers turn into a jump: the shim sees the caller of this. */
int jump(void) { return nvrtcCompileProgram(0, 0, 0); }

#else

#include <dlfcn.h>
#include <stdio.h>

/* compiler_copy LIBRARY[:FUNCTION]...: opens each and calls `FUNCTION`, else `call`. */
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s", argv[i]);
    const char* function = "call";
    for (char* at = path; *at != 0; ++at) {
      if (*at != ':') continue;
      *at = 0;
      function = at + 1;
    }
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == 0) {
      printf("%s\n", dlerror());
      return 1;
    }
    int (*found)(void*, int, const char* const*) =
        (int (*)(void*, int, const char* const*))dlsym(library, function);
    const char* error = dlerror();
    printf("%s: %d %s\n", function, found == 0 ? -1 : found(0, 0, 0), error == 0 ? "" : "dlerror");
  }
  printf("default: %s\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") == 0 ? "none" : "found");
  printf("dlerror: %s\n", dlerror() == 0 ? "none" : "set");
  return 0;
}

#endif
