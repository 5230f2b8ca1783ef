// SPDX-License-Identifier: Apache-2.0
#include "guest/auxiliary_vector.h"

#include <elf.h>

#include <atomic>
#include <cstddef>

#include "guest/errno_keeper.h"
#include "guest/syscalls.h"

namespace kshim::shim {
namespace {

struct Pair {
  unsigned long type;
  unsigned long value;
};
constexpr std::size_t kTypes = 64;  // Linux 6.12 uses numbers up to 51
std::atomic<unsigned long> g_values[kTypes];
enum State : int { unread, known, unknown };
std::atomic<int> g_state{unread};

// The file comes first: Valgrind and QEMU's user mode emulate it, but not prctl.
std::size_t read_pairs(Pair* to, std::size_t size) noexcept {
  constexpr long kGetAuxiliaryVector = 0x41555856;  // PR_GET_AUXV, Linux 6.4
  const int file = raw::open_file("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
  long got = file < 0 ? 0 : raw::read_file(file, to, size);
  if (file >= 0) raw::close_file(file);
  if (got <= 0) got = raw::call(SYS_prctl, kGetAuxiliaryVector, to, size, 0, 0);
  return got <= 0 ? 0 : static_cast<std::size_t>(got) / sizeof(Pair);
}

// Threads that race here store the same values.
int read() noexcept {
  const ErrnoKeeper keeper;
  Pair pairs[kTypes] = {};
  const std::size_t count = read_pairs(pairs, sizeof pairs);
  for (std::size_t i = 0; i < count && i < kTypes && pairs[i].type != AT_NULL; ++i)
    if (pairs[i].type < kTypes) g_values[pairs[i].type].store(pairs[i].value, std::memory_order_relaxed);
  const int state = count == 0 ? unknown : known;
  g_state.store(state, std::memory_order_release);
  return state;
}

int state() noexcept {
  const int now = g_state.load(std::memory_order_acquire);
  return now == unread ? read() : now;
}

}  // namespace

unsigned long auxiliary_value(unsigned long type) noexcept {
  return type < kTypes && state() == known ? g_values[type].load(std::memory_order_relaxed) : 0;
}

bool has_raised_rights() noexcept {
  if (state() == known) return auxiliary_value(AT_SECURE) != 0;
  const ErrnoKeeper keeper;
  return raw::call(SYS_getuid) != raw::call(SYS_geteuid) || raw::call(SYS_getgid) != raw::call(SYS_getegid);
}

}  // namespace kshim::shim
