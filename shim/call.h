// SPDX-License-Identifier: Apache-2.0
// Between a wrapper and what the shim makes of it. A wrapper calls, tests and returns; when the test fails it
// hands the arguments over as CallFacts, picked by their types alone (cuda_abi.h), and what follows is cold.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "cuda_abi.h"
#include "guest.h"
#include "hooks.h"

namespace kshim::shim {

/// What a failed call's arguments tell. Addresses are the program's and may be wrong: read them with
/// read_memory.
struct CallFacts {
  Hook hook{};
  abi::Result code = 0;
  const void* caller = nullptr;  ///< return address of the wrapper
  std::uintptr_t handle = 0;     ///< CUfunction or CUkernel
  std::uintptr_t container = 0;  ///< CUmodule or CUlibrary
  std::uintptr_t image = 0;      ///< device code handed over in memory
  const char* file = nullptr;    ///< device code handed over as a file
  const char* symbol = nullptr;  ///< kernel or variable asked for
  std::uintptr_t host = 0;       ///< host stub of a kernel, or host shadow of a variable
};

inline std::uintptr_t address_of(const volatile void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

inline void take(CallFacts& facts, abi::CUfunction function) noexcept { facts.handle = address_of(function); }
inline void take(CallFacts& facts, abi::CUkernel kernel) noexcept { facts.handle = address_of(kernel); }
inline void take(CallFacts& facts, abi::CUmodule module) noexcept { facts.container = address_of(module); }
inline void take(CallFacts& facts, abi::CUlibrary library) noexcept { facts.container = address_of(library); }
inline void take(CallFacts& facts, abi::ImageData image) noexcept { facts.image = address_of(image); }
inline void take(CallFacts& facts, abi::FileName file) noexcept {
  facts.file = reinterpret_cast<const char*>(file);
}
inline void take(CallFacts& facts, abi::SymbolName name) noexcept {
  facts.symbol = reinterpret_cast<const char*>(name);
}
inline void take(CallFacts& facts, abi::HostFunction function) noexcept { facts.host = address_of(function); }
inline void take(CallFacts& facts, abi::HostVariable variable) noexcept { facts.host = address_of(variable); }
inline void take(CallFacts& facts, const abi::KernelNodeParamsV1* node) noexcept {
  read_memory(address_of(node), &facts.handle, sizeof facts.handle);
}
inline void take(CallFacts& facts, const abi::KernelNodeParams* node) noexcept {
  abi::KernelNodeParams copy;
  if (read_memory(address_of(node), &copy, sizeof copy))
    facts.handle = address_of(copy.function != nullptr ? static_cast<void*>(copy.function) : copy.kernel);
}
inline void take(CallFacts& facts, const abi::RuntimeKernelNodeParams* node) noexcept {
  read_memory(address_of(node), &facts.host, sizeof facts.host);
}
template <class Other>
void take(CallFacts&, Other) noexcept {}
/// The types that the overloads above know.
template <class Argument, class... Known>
constexpr bool kIsOneOf = (std::is_same_v<Argument, Known> || ...);
template <class Argument>
constexpr bool kTells = kIsOneOf<Argument, abi::CUfunction, abi::CUkernel, abi::CUmodule, abi::CUlibrary,
                                 abi::ImageData, abi::FileName, abi::SymbolName, abi::HostFunction,
                                 abi::HostVariable, const abi::KernelNodeParamsV1*,
                                 const abi::KernelNodeParams*, const abi::RuntimeKernelNodeParams*>;

template <class... Arguments>
inline CallFacts facts_of(Hook hook, abi::Result code, const void* caller, Arguments... arguments) noexcept {
  CallFacts facts;
  facts.hook = hook;
  facts.code = code;
  facts.caller = caller;
  (take(facts, arguments), ...);
  return facts;
}

/// What a successful load or look-up has written: the first argument that points to a handle. 0 where none
/// does.
template <class Handle>
constexpr bool kIsHandle = std::is_same_v<Handle, abi::CUmodule> || std::is_same_v<Handle, abi::CUlibrary> ||
                           std::is_same_v<Handle, abi::CUfunction> || std::is_same_v<Handle, abi::CUkernel>;
inline std::uintptr_t handle_written() noexcept { return 0; }
template <class First, class... Others>
std::uintptr_t handle_written(First first, Others... others) noexcept {
  if constexpr (std::is_pointer_v<First> && kIsHandle<std::remove_pointer_t<First>>)
    return first == nullptr ? 0 : address_of(*first);
  else
    return handle_written(others...);
}

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
