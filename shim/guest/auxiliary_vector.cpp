// SPDX-License-Identifier: Apache-2.0
#include "guest/auxiliary_vector.h"

#include <elf.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "guest/own_file.h"
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

/// Where the kernel put it, and the dynamic linker corrected it: behind the environment. nullptr if that is
/// not what lies there: an earlier constructor has changed the environment, or the linker took variables out
/// of a privileged program's.
const Pair* pairs_on_stack() noexcept {
  constexpr unsigned long kNeeded[] = {AT_PHDR, AT_PAGESZ, AT_ENTRY, AT_SECURE, AT_RANDOM};
  constexpr std::uintptr_t kMaxDistance = std::uintptr_t{64} << 20U;
  char* const* entry = __environ;
  const char here = 0;  // the main thread's stack ends with the environment
  if (reinterpret_cast<std::uintptr_t>(entry) - reinterpret_cast<std::uintptr_t>(&here) > kMaxDistance)
    return nullptr;
  while (*entry != nullptr) ++entry;
  const auto* const pairs = reinterpret_cast<const Pair*>(entry + 1);
  std::uint64_t types = 0;
  for (std::size_t i = 0; pairs[i].type != AT_NULL; ++i) {
    if (pairs[i].type >= kTypes || i == kTypes) return nullptr;
    types |= std::uint64_t{1} << pairs[i].type;
  }
  for (const unsigned long type : kNeeded)
    if ((types >> type & 1U) == 0) return nullptr;
  return pairs;
}

// The file comes before prctl: Valgrind and QEMU's user mode emulate it, but not prctl.
std::size_t read_pairs(Pair* to, std::size_t size) noexcept {
  constexpr long kGetAuxiliaryVector = 0x41555856;  // PR_GET_AUXV, Linux 6.4
  const OwnFile file(raw::open_file("/proc/self/auxv", O_RDONLY | O_CLOEXEC));
  auto got = static_cast<long>(file.read(0, to, size));
  if (got <= 0) got = raw::call(SYS_prctl, kGetAuxiliaryVector, to, size, 0, 0);
  return got <= 0 ? 0 : static_cast<std::size_t>(got) / sizeof(Pair);
}

// Threads that race here store the same values.
int publish(const Pair* pairs) noexcept {
  for (const Pair* pair = pairs; pair != nullptr && pair->type != AT_NULL; ++pair)
    if (pair->type < kTypes) g_values[pair->type].store(pair->value, std::memory_order_relaxed);
  const int state = pairs == nullptr ? unknown : known;
  g_state.store(state, std::memory_order_release);
  return state;
}

[[gnu::noinline]] int ask_kernel() noexcept {
  Pair pairs[kTypes + 1] = {};
  return publish(read_pairs(pairs, sizeof pairs - sizeof pairs[0]) == 0 ? nullptr : pairs);
}

int read() noexcept {
  const Pair* const pairs = pairs_on_stack();
  return pairs != nullptr ? publish(pairs) : ask_kernel();
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
  return raw::call(SYS_getuid) != raw::call(SYS_geteuid) || raw::call(SYS_getgid) != raw::call(SYS_getegid);
}

}  // namespace kshim::shim
