// SPDX-License-Identifier: Apache-2.0
#include "failure/cudart_frame.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

namespace kshim::shim {
namespace {

#if defined(__x86_64__)
// kshim_test_run(work) calls kshim_test_misread(work), which calls work(), and says in its unwind table that
// its caller's stack is 1 MiB further up. Both find their callers by the stack pointer.
extern "C" void kshim_test_run(void (*work)());
extern "C" void kshim_test_misread(void (*work)());
asm(R"(
        .pushsection .text
        .type   kshim_test_run, @function
kshim_test_run:
        .cfi_startproc
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    kshim_test_misread
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   kshim_test_run, . - kshim_test_run
        .type   kshim_test_misread, @function
kshim_test_misread:
        .cfi_startproc
        .cfi_escape 0x16, 7, 4, 0x23, 0x80, 0x80, 0x40  # DW_CFA_val_expression: rsp = CFA + 1048576
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    *%rdi
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   kshim_test_misread, . - kshim_test_misread
        .popsection
)");

bool g_found = true;
void look() {
  g_found = called_from_cudart(reinterpret_cast<const void*>(&kshim_test_misread),
                               reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
}
void* run(void*) {
  kshim_test_run(look);
  return nullptr;
}

// On a stack behind which nothing can be read.
TEST(CudartFrame, AMisreadFrameEndsTheWalk) {
  constexpr std::size_t kStack = std::size_t{1} << 20U;
  constexpr std::size_t kBehind = std::size_t{4} << 20U;
  void* const memory = mmap(nullptr, kStack + kBehind, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory, kStack, PROT_READ | PROT_WRITE), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, kStack);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, run, nullptr), 0);
  pthread_join(thread, nullptr);
  EXPECT_FALSE(g_found);
  munmap(memory, kStack + kBehind);
}
#endif

}  // namespace
}  // namespace kshim::shim
