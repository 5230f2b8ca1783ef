// SPDX-License-Identifier: Apache-2.0
// gap records: device code without an image for the current device, or for one of KSHIM_TARGET.
#pragma once
#include <cstdint>
#include <optional>

#include "track/device_code.h"

namespace kshim::shim {

/// What the driver would take for a device.
image::Selection selection_for(const DeviceCode& code, image::ComputeCapability device) noexcept;
/// Writes a gap for the device, if there is one, and for each target; each once a report.
void note_gaps(const DeviceCode& code, std::optional<std::uint64_t> device) noexcept;
/// The same after a failure in the module. But for that of a load, the gap for the device lists all kernels,
/// also where it is there already and lists a few.
void note_gaps_of_failure(const DeviceCode& code, std::optional<std::uint64_t> device, bool of_load) noexcept;
/// The same after a load by `caller`: what an NVIDIA library hands over from memory it has chosen for this
/// device, and would choose otherwise for a target.
void note_gaps_of_load(const DeviceCode& code, std::optional<std::uint64_t> device,
                       const void* caller) noexcept;

}  // namespace kshim::shim
