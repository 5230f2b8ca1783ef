// SPDX-License-Identifier: Apache-2.0
#include "guest/process_generation.h"

#include "guest/signals.h"
#include "guest/syscalls.h"

// glibc's; musl has none, and no driver.
extern "C" [[gnu::weak]] int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                               void* library);

namespace kshim::shim {

namespace {

// Before all else that may be registered: a host's own handler may call the driver.
[[gnu::constructor(101)]] void count_forks() {
  call_in_child([] { g_generation.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

void call_in_child(void (*function)()) noexcept {
  if (__register_atfork != nullptr) __register_atfork(nullptr, nullptr, function, nullptr);
}

std::uint64_t thread_token() noexcept {
  constexpr std::uint64_t kThread = (std::uint64_t{1} << kBitsOfThread) - 1;
  return std::uint64_t{process_generation()} << kBitsOfThread |
         (reinterpret_cast<std::uintptr_t>(&t_inside) >> 6U & kThread);
}

std::uint32_t thread_id() noexcept { return raw::thread(); }

}  // namespace kshim::shim
