// SPDX-License-Identifier: Apache-2.0
// The exports that programs linked to libnvrtc and libnvJitLink bind to: one function for each row of
// compilers.def and version node. None is the default version (see runtime_exports.cpp). And the wrappers for
// addresses of these functions that dlsym has returned.
#include <array>
#include <atomic>
#include <utility>

#include "core/observer.h"
#include "cuda/call_args.h"
#include "cuda/compilers.h"
#include "exports/symbol_lookup.h"
#include "process/link_map.h"

namespace kshim::shim {
namespace {

/// The libraries' codes for internal errors: NVRTC_ERROR_INTERNAL_ERROR, NVJITLINK_ERROR_INTERNAL.
constexpr abi::Result kNvrtcInternal = 11;
constexpr abi::Result kNvJitLinkInternal = 6;

abi::Result call(Hook hook, AnyFunction real, const void* caller, void* program, unsigned count,
                 const char* const* options) noexcept {
  const abi::Result code = reinterpret_cast<abi::CompilerFunction>(real)(program, count, options);
  if (code != 0) on_compiler_failed({hook, code, caller, address_of(real), count, options});
  return code;
}

/// Wrappers for addresses that dlsym has returned. A library that is loaded again has another address, so
/// there are several for each library. One is used again when no library is mapped at its address.
struct Slot {
  std::atomic<AnyFunction> real{nullptr};
  std::atomic<Hook> hook{};
};
constexpr std::size_t kSlots = 32;
constinit std::array<Slot, kSlots> g_slots;
char g_being_taken = 0;  ///< its address stands in a slot that another thread is filling

template <std::size_t kIndex>
abi::Result routed(void* program, unsigned count, const char* const* options) noexcept {
  const Slot& slot = g_slots[kIndex];
  return call(slot.hook.load(std::memory_order_relaxed), slot.real.load(std::memory_order_acquire),
              __builtin_return_address(0), program, count, options);
}

template <std::size_t... kIndex>
abi::CompilerFunction wrapper_at(std::size_t index, std::index_sequence<kIndex...>) noexcept {
  static constexpr abi::CompilerFunction kWrappers[] = {&routed<kIndex>...};
  return kWrappers[index];
}

abi::Result call_compiler(Hook hook, std::string_view node, const void* caller, void* program, unsigned count,
                          const char* const* options) noexcept {
  const AnyFunction real = find_compiler(hook, node, caller);
  if (real == nullptr) return row_of(hook).layer == Layer::nvrtc ? kNvrtcInternal : kNvJitLinkInternal;
  return call(hook, real, caller, program, count, options);
}

}  // namespace

AnyFunction compiler_wrapper(Hook hook, AnyFunction address) noexcept {
  const auto wrapper = [](std::size_t index) {
    return reinterpret_cast<AnyFunction>(wrapper_at(index, std::make_index_sequence<kSlots>()));
  };
  // A program may still have a pointer to the wrapper, so the linker's word alone counts.
  const auto is_gone = [](AnyFunction function) {
    FoundByLinker found{};
    return linkers_look_up() != nullptr && linkers_look_up()(function, &found) != 0;
  };
  for (std::size_t i = 0; i < kSlots; ++i)
    if (g_slots[i].real.load(std::memory_order_acquire) == address && g_slots[i].hook.load() == hook)
      return wrapper(i);
  for (std::size_t i = 0; i < kSlots; ++i) {
    Slot& slot = g_slots[i];
    AnyFunction holder = slot.real.load(std::memory_order_acquire);
    if (holder == &g_being_taken || (holder != nullptr && !is_gone(holder)) ||
        !slot.real.compare_exchange_strong(holder, &g_being_taken, std::memory_order_acq_rel))
      continue;
    slot.hook.store(hook, std::memory_order_relaxed);
    slot.real.store(address, std::memory_order_release);
    return wrapper(i);
  }
  return address;
}

}  // namespace kshim::shim

using namespace kshim::shim;

#define KSHIM_EXPORT(name, tag, at, node)                                                                   \
  extern "C" [[gnu::visibility("default")]] abi::Result kshim_##tag##_##name(void* program, unsigned count, \
                                                                             const char* const* options);   \
  asm(".symver kshim_" #tag "_" #name ", " #name at node);                                                  \
  abi::Result kshim_##tag##_##name(void* program, unsigned count, const char* const* options) {             \
    return call_compiler(Hook::name, node, __builtin_return_address(0), program, count, options);           \
  }

#define KSHIM_NODES_nvrtc(name)                        \
  KSHIM_EXPORT(name, nvrtc11, "@", "libnvrtc.so.11.2") \
  KSHIM_EXPORT(name, nvrtc12, "@", "libnvrtc.so.12")   \
  KSHIM_EXPORT(name, nvrtc13, "@", "libnvrtc.so.13")
#define KSHIM_NODES_link(name)                          \
  KSHIM_EXPORT(name, link12, "@", "libnvJitLink.so.12") \
  KSHIM_EXPORT(name, link13, "@", "libnvJitLink.so.13")
#define KSHIM_NODES_link12(name) KSHIM_EXPORT(name, link12, "@", "libnvJitLink.so.12")
#define KSHIM_NODES_link13(name) KSHIM_EXPORT(name, link13, "@", "libnvJitLink.so.13")

#define KSHIM_COMPILER(layer, name, nodes) KSHIM_NODES_##nodes(name)
#include "cuda/compilers.def"
#undef KSHIM_COMPILER
