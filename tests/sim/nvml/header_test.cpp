// SPDX-License-Identifier: Apache-2.0
// sim/nvml/types.h and functions.def against nvml.h, where the toolkit brings one. Nothing runs: it compiles
// or not.
#if __has_include(<nvml.h>)
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <cstddef>
#include <type_traits>

#include "nvml/types.h"

namespace kshim::sim::nvml {
namespace {

static_assert(sizeof(Memory) == sizeof(nvmlMemory_t));
static_assert(offsetof(Memory, free) == offsetof(nvmlMemory_t, free));
static_assert(offsetof(Memory, used) == offsetof(nvmlMemory_t, used));
static_assert(sizeof(MemoryV2) == sizeof(nvmlMemory_v2_t) && kMemoryV2 == nvmlMemory_v2);
static_assert(offsetof(MemoryV2, total) == offsetof(nvmlMemory_v2_t, total));
static_assert(offsetof(MemoryV2, reserved) == offsetof(nvmlMemory_v2_t, reserved));
static_assert(offsetof(MemoryV2, free) == offsetof(nvmlMemory_v2_t, free));
static_assert(offsetof(MemoryV2, used) == offsetof(nvmlMemory_v2_t, used));
static_assert(sizeof(PciInfo) == sizeof(nvmlPciInfo_t));
static_assert(offsetof(PciInfo, domain) == offsetof(nvmlPciInfo_t, domain));
static_assert(offsetof(PciInfo, bus) == offsetof(nvmlPciInfo_t, bus));
static_assert(offsetof(PciInfo, device) == offsetof(nvmlPciInfo_t, device));
static_assert(offsetof(PciInfo, device_id) == offsetof(nvmlPciInfo_t, pciDeviceId));
static_assert(offsetof(PciInfo, subsystem_id) == offsetof(nvmlPciInfo_t, pciSubSystemId));
static_assert(offsetof(PciInfo, bus_id) == offsetof(nvmlPciInfo_t, busId));

template <class Ours, class Theirs>
constexpr bool equal(Ours ours, Theirs theirs) {
  return sizeof(Ours) == sizeof(Theirs) && static_cast<long>(ours) == static_cast<long>(theirs);
}
static_assert(equal(Result::success, NVML_SUCCESS));
static_assert(equal(Result::uninitialized, NVML_ERROR_UNINITIALIZED));
static_assert(equal(Result::invalid_argument, NVML_ERROR_INVALID_ARGUMENT));
static_assert(equal(Result::not_supported, NVML_ERROR_NOT_SUPPORTED));
static_assert(equal(Result::not_found, NVML_ERROR_NOT_FOUND));
static_assert(equal(Result::insufficient_size, NVML_ERROR_INSUFFICIENT_SIZE));
static_assert(equal(Result::argument_version_mismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH));
static_assert(equal(PeerQuestion::read, NVML_P2P_CAPS_INDEX_READ));
static_assert(equal(PeerQuestion::write, NVML_P2P_CAPS_INDEX_WRITE));
static_assert(equal(PeerQuestion::nvlink, NVML_P2P_CAPS_INDEX_NVLINK));
static_assert(equal(PeerQuestion::atomics, NVML_P2P_CAPS_INDEX_ATOMICS));
static_assert(equal(PeerQuestion::pci, NVML_P2P_CAPS_INDEX_PCI));
static_assert(equal(PeerStatus::ok, NVML_P2P_STATUS_OK));
static_assert(equal(PeerStatus::not_supported, NVML_P2P_STATUS_NOT_SUPPORTED));
static_assert(equal(ComputeMode::standard, NVML_COMPUTEMODE_DEFAULT));

/// A parameter is passed alike: pointers to things of one size, or numbers of one size.
template <class Ours, class Theirs>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using One = std::remove_pointer_t<Ours>;
    using Other = std::remove_pointer_t<Theirs>;
    if constexpr (requires { sizeof(One) + sizeof(Other); }) {
      return sizeof(One) == sizeof(Other) && std::is_const_v<One> == std::is_const_v<Other>;
    } else {
      return std::is_same_v<One, Handle> && std::is_same_v<Theirs, nvmlDevice_t>;
    }
  } else {
    return !std::is_pointer_v<Ours> && !std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}
template <class... Ours>
struct Call {
  template <class... Theirs>
  static constexpr bool matches(nvmlReturn_t (*)(Theirs...)) {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
      return (alike<Ours, Theirs>() && ...);
    } else {
      return false;
    }
  }
};
#define KSHIM_NVML(name, ...) static_assert(Call<__VA_ARGS__>::matches(&::name), #name);
#include "nvml/functions.def"
#undef KSHIM_NVML

template <class... Rest>
constexpr bool device_first(nvmlReturn_t (*)(nvmlDevice_t, Rest...)) {
  return true;
}
// Of functions that nvml.h declares no more (older variants) nothing can be compared.
#define nvmlDeviceGetComputeRunningProcesses nvmlDeviceGetComputeRunningProcesses_v3
#define nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses_v3
#define nvmlDeviceGetGraphicsRunningProcesses nvmlDeviceGetGraphicsRunningProcesses_v3
#define nvmlDeviceGetGraphicsRunningProcesses_v2 nvmlDeviceGetGraphicsRunningProcesses_v3
#define KSHIM_NVML_NOT_SIMULATED(name) static_assert(device_first(&::name));
#include "nvml/not_simulated.def"
#undef KSHIM_NVML_NOT_SIMULATED

}  // namespace
}  // namespace kshim::sim::nvml
#endif
