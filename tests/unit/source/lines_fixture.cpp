// SPDX-License-Identifier: Apache-2.0
// What host_lines_test.cpp asks about: a function with another inlined into it. The lines are known by their
// marks.
#include <cstdint>

extern "C" std::uint64_t kshim_lines_outer(std::uint64_t value);
extern "C" void kshim_lines_callback(std::uint64_t value);
extern "C" __attribute__((noinline)) void kshim_lines_callback(std::uint64_t value) {
  asm volatile("" : : "r"(value) : "memory");
}

namespace lines {
inline __attribute__((always_inline)) std::uint64_t inner(std::uint64_t value) {
  kshim_lines_callback(value * 3);  // mark: inner
  return value + 1;
}
}  // namespace lines

std::uint64_t kshim_lines_outer(std::uint64_t value) {
  const std::uint64_t out = lines::inner(value);  // mark: outer
  return out * 5;
}
