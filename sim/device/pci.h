// SPDX-License-Identifier: Apache-2.0
// PCI addresses as CUDA and NVML take them from programs.
#pragma once
#include <optional>
#include <string_view>

#include "device/product.h"

namespace kshim::sim {

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0;
};

/// "[domain:]bus:device[.function]", all hexadecimal (CUDA Driver API, cuDeviceGetByPCIBusId; NVML,
/// nvmlDeviceGetHandleByPciBusId). Which function it is plays no part: a GPU's CUDA side has one.
std::optional<PciAddress> parse_pci_address(std::string_view text) noexcept;
bool is_at(const Device& device, const PciAddress& address) noexcept;

}  // namespace kshim::sim
