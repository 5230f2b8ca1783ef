// SPDX-License-Identifier: Apache-2.0
// Between a wrapper and what the shim makes of it. A wrapper calls, tests and returns; when the test fails it
// hands the arguments over as CallFacts, picked by their types alone (cuda_abi.h), and what follows is cold.
#pragma once
#include <atomic>
#include <cstdint>

#include "cuda/call_args.h"

namespace kshim::shim {

/// Driver failures that a call of the shared runtime is still to answer for: see failures.h.
extern std::atomic<std::uint32_t> g_pending;

// --- what the wrappers call when there is something to do; all of it cold
// -----------------------------------------

/// Notes a failed call. errno is kept.
void note_failure(const CallFacts& facts) noexcept;
/// A runtime call came back, well or not, while a driver failure was waiting for it.
void note_runtime_return(const CallFacts& facts) noexcept;
/// Fills the table of real functions; nullptr where there is none, which `absent` answers.
void* resolve_export(Hook hook) noexcept;
void* resolve_routed(Hook hook) noexcept;
void* resolve_runtime(Runtime runtime, Hook hook) noexcept;
/// What a driver or runtime function answers that does not exist: only programs that test for it by a weak
/// reference, or look it up while it goes away, ever see it.
abi::Result absent(Hook hook) noexcept;

/// Hands a failed call over and answers its code. Only the arguments that tell something are carried across
/// the real call, which is what keeps the launch path short: Picked drops the others, hand_over is out of
/// line.
using Noted = void (*)(const CallFacts&) noexcept;
template <Noted kNoted, class... Kept>
[[gnu::noinline, gnu::cold]] abi::Result hand_over(Hook hook, abi::Result code, const void* caller,
                                                   Kept... kept) noexcept {
  kNoted(facts_of(hook, code, caller, kept...));
  return code;
}
template <Noted kNoted, class... Kept>
struct Picked {
  [[gnu::always_inline]] static abi::Result from(Hook hook, abi::Result code, const void* caller,
                                                 Kept... kept) noexcept {
    return hand_over<kNoted, Kept...>(hook, code, caller, kept...);
  }
  template <class First, class... Rest>
  [[gnu::always_inline]] static abi::Result from(Hook hook, abi::Result code, const void* caller,
                                                 Kept... kept, First first, Rest... rest) noexcept {
    if constexpr (kTells<First>)
      return Picked<kNoted, Kept..., First>::from(hook, code, caller, kept..., first, rest...);
    else
      return Picked<kNoted, Kept...>::from(hook, code, caller, kept..., rest...);
  }
};

/// A load: when it began, and what it became.
std::uint64_t load_begins() noexcept;
void note_load(const CallFacts& facts, std::uint64_t begin, std::uintptr_t handle) noexcept;
/// A look-up that succeeded: `handle` is now known under a name, or as another handle's kin.
void note_lookup(const CallFacts& facts, std::uintptr_t handle) noexcept;

/// cuInit: the report begins before it, driver and devices are written after it.
void init_begins() noexcept;
void note_init(const CallFacts& facts) noexcept;

}  // namespace kshim::shim
