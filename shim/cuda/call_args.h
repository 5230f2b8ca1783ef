// SPDX-License-Identifier: Apache-2.0
// Selects the arguments of a call that a report uses, by their types alone (cuda_abi.h).
#pragma once
#include <cstdint>
#include <type_traits>

#include "cuda/cuda_abi.h"
#include "cuda/hooks.h"
#include "guest/safe_memory.h"

namespace kshim::shim {

/// The arguments of a call that a report uses. Addresses come from the program and may be invalid: read them
/// with read_memory.
struct CallArgs {
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

inline void extract_arg(CallArgs& facts, abi::CUfunction function) noexcept {
  facts.handle = address_of(function);
}
inline void extract_arg(CallArgs& facts, abi::CUkernel kernel) noexcept { facts.handle = address_of(kernel); }
inline void extract_arg(CallArgs& facts, abi::CUmodule module) noexcept {
  facts.container = address_of(module);
}
inline void extract_arg(CallArgs& facts, abi::CUlibrary library) noexcept {
  facts.container = address_of(library);
}
inline void extract_arg(CallArgs& facts, abi::ImageData image) noexcept { facts.image = address_of(image); }
inline void extract_arg(CallArgs& facts, abi::FileName file) noexcept {
  facts.file = reinterpret_cast<const char*>(file);
}
inline void extract_arg(CallArgs& facts, abi::SymbolName name) noexcept {
  facts.symbol = reinterpret_cast<const char*>(name);
}
inline void extract_arg(CallArgs& facts, abi::HostFunction function) noexcept {
  facts.host = address_of(function);
}
inline void extract_arg(CallArgs& facts, abi::HostVariable variable) noexcept {
  facts.host = address_of(variable);
}
inline void extract_arg(CallArgs& facts, const abi::KernelNodeParamsV1* node) noexcept {
  read_memory(address_of(node), &facts.handle, sizeof facts.handle);
}
inline void extract_arg(CallArgs& facts, const abi::KernelNodeParams* node) noexcept {
  abi::KernelNodeParams copy;
  if (read_memory(address_of(node), &copy, sizeof copy))
    facts.handle = address_of(copy.function != nullptr ? static_cast<void*>(copy.function) : copy.kernel);
}
inline void extract_arg(CallArgs& facts, const abi::RuntimeKernelNodeParams* node) noexcept {
  read_memory(address_of(node), &facts.host, sizeof facts.host);
}
template <class Other>
void extract_arg(CallArgs&, Other) noexcept {}
/// The types that extract_arg() above accepts.
template <class Argument, class... Known>
constexpr bool kIsOneOf = (std::is_same_v<Argument, Known> || ...);
template <class Argument>
constexpr bool kIsReportable = kIsOneOf<Argument, abi::CUfunction, abi::CUkernel, abi::CUmodule,
                                        abi::CUlibrary, abi::ImageData, abi::FileName, abi::SymbolName,
                                        abi::HostFunction, abi::HostVariable, const abi::KernelNodeParamsV1*,
                                        const abi::KernelNodeParams*, const abi::RuntimeKernelNodeParams*>;

template <class... Arguments>
inline CallArgs args_of(Hook hook, abi::Result code, const void* caller, Arguments... arguments) noexcept {
  CallArgs facts;
  facts.hook = hook;
  facts.code = code;
  facts.caller = caller;
  (extract_arg(facts, arguments), ...);
  return facts;
}

/// The handle that a successful load or look-up has written: through the first argument that points to a
/// handle. 0 if there is none.
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

}  // namespace kshim::shim
