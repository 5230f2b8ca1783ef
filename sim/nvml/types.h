// SPDX-License-Identifier: Apache-2.0
// The types of NVML's binary interface, declared here from its documentation (NVML API Reference Guide,
// driver 580), since the wheels of tools/requirements-cuda.txt bring no nvml.h. Where a machine has that
// header, tests/sim/nvml_types.cpp compares sizes, offsets and numbers with it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kshim::sim::nvml {

/// The values of nvmlReturn_t that this library returns.
enum class Result : std::int32_t {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  not_found = 6,
  insufficient_size = 7,
  argument_version_mismatch = 25,
};

/// nvmlDevice_t. Its address is the device's place in a list of this library; it is compared and never
/// followed.
struct Handle;

/// nvmlMemory_t, bytes. What v1 calls used is used and reserved of v2.
struct Memory {
  unsigned long long total, free, used;
};

/// nvmlMemory_v2_t: the caller sets `version`, size and number of the structure.
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | 2U << 24;

/// nvmlPciInfo_t as the functions _v3 fill it.
struct PciInfo {
  char bus_id_legacy[16];  ///< "0000:01:00.0"
  unsigned domain, bus, device;
  unsigned device_id;  ///< vendor in the low half
  unsigned subsystem_id;
  char bus_id[32];  ///< "00000000:01:00.0"
};

/// nvmlGpuP2PCapsIndex_t
enum class PeerQuestion : std::uint32_t { read, write, nvlink, atomics, pci };
/// nvmlGpuP2PStatus_t
enum class PeerStatus : std::uint32_t { ok = 0, not_supported = 5 };
/// nvmlComputeMode_t
enum class ComputeMode : std::uint32_t { standard = 0 };

}  // namespace kshim::sim::nvml
