// SPDX-License-Identifier: Apache-2.0
// The driver and its devices: asked once, after the first cuInit that succeeds, and written into each report
// of the process.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "guest/text_buffer.h"
#include "kshim/image/select.h"

namespace kshim::shim {

struct DeviceFacts {
  Text<256> name;
  image::ComputeCapability cc;
  Text<40> uuid;
  Text<32> pci;
};
constexpr std::size_t kMaxDevices = 64;

/// Asks the driver. Call it after cuInit, outside of any lock; a second call does nothing.
void learn_driver(bool initialised) noexcept;
/// Writes the driver and device records into the present report, once each.
void announce_driver() noexcept;

std::size_t device_count() noexcept;
/// nullptr for an ordinal that is not known.
const DeviceFacts* device_facts(std::optional<std::uint64_t> ordinal) noexcept;
/// Ordinal of the calling thread's current device, or of the only one; nothing where the driver does not say.
std::optional<std::uint64_t> current_device() noexcept;
/// What select_image needs to know about a device.
image::Platform platform_of(image::ComputeCapability device) noexcept;

}  // namespace kshim::shim
