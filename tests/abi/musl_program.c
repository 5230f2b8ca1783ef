/* SPDX-License-Identifier: Apache-2.0
   A program of another C library: linked to musl's loader, with no header of either, it says through dlsym
   and _Exit, which libkshim.so defines, whether the preload left it alone. */
int puts(const char* line);
int fflush(void* stream);
void* dlsym(void* handle, const char* name);
void _Exit(int status) __attribute__((noreturn));
int __libc_start_main(int (*main_function)(int, char**), int count, char** arguments, void (*)(void),
                      void (*)(void), void (*)(void));

static int program(int count, char** arguments) {
  (void)arguments;
  puts(dlsym(0, "puts") != 0 && dlsym(0, "cuInit") == 0 ? "as ever" : "dlsym is another");
  fflush(0);
  if (count > 1) _Exit(3);
  return 4;
}

__attribute__((used)) static void start(long* stack) {
  __libc_start_main(program, (int)*stack, (char**)(stack + 1), 0, 0, 0);
}

#ifdef __x86_64__
__asm__(".globl _start\n_start:\n  xor %rbp, %rbp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call start\n");
#else
__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x0, sp\n  and sp, x0, #-16\n  bl start\n");
#endif
