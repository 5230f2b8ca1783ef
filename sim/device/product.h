// SPDX-License-Identifier: Apache-2.0
// Devices: what a compute capability limits, what a product has, and the list this process sees.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/driver_api.h"
#include "kshim/image/arch.h"

namespace kshim::sim {

constexpr std::size_t kMaxDevices = 64;

struct Limits {
  image::ComputeCapability cc;
  int threads_per_sm;
  int blocks_per_sm;
  int shared_per_sm;  ///< bytes
  int shared_optin;   ///< bytes a block
  int registers_per_sm;
  int registers_per_block;
  int shared_reserved;  ///< bytes a block
  bool integrated;
  int fp64_ratio;  ///< single to double precision throughput (Programming Guide, "Arithmetic Instructions")
};
const Limits* find_limits(image::ComputeCapability cc) noexcept;

struct Product {
  image::ComputeCapability cc;
  std::string_view name;
  int multiprocessors;
  int core_khz;
  int memory_khz;
  int bus_bits;
  int l2_bytes;
  std::uint64_t memory_bytes;
};
/// The product whose name contains `wanted` (case ignored); the first of the compute capability when none
/// does.
const Product& find_product(image::ComputeCapability cc, std::string_view wanted) noexcept;

struct Device {
  int ordinal = 0;  ///< as the program counts; in all_devices() the place in the list
  std::string name;
  Limits limits{};
  Product product{};
  std::uint64_t memory_bytes = 0;
  CUuuid gpu_uuid{};
  CUuuid uuid{};  ///< the same; of an instance (MIG), which a name with " MIG " makes, its own
  bool is_instance() const { return name.find(" MIG ") != std::string::npos; }
  int pci_domain = 0, pci_bus = 0, pci_device = 0;
};

/// The devices of KSHIM_SIM_DEVICES, in that order, as NVML shows them: it ignores CUDA_VISIBLE_DEVICES.
/// Constant after the first call.
std::span<const Device> all_devices() noexcept;
/// Devices after CUDA_VISIBLE_DEVICES, in its order. Never changes after the first call.
std::span<const Device> devices() noexcept;
/// Null for an ordinal that is not there (CUDA_ERROR_INVALID_DEVICE).
const Device* device_at(CUdevice ordinal) noexcept;

/// "GPU-" or "MIG-" and the 36 characters of RFC 4122, as NVML and CUDA_VISIBLE_DEVICES write it.
std::string uuid_text(const Device& device);

/// The value of a CU_DEVICE_ATTRIBUTE_*; false for a number this header does not know.
bool device_attribute(const Device& device, int attribute, int& value) noexcept;

}  // namespace kshim::sim
