// SPDX-License-Identifier: Apache-2.0
#include "device/pci.h"

#include <charconv>
#include <system_error>

namespace kshim::sim {
namespace {

/// One hexadecimal number off the front; false for none, for a sign, and for more than 32 bits.
bool take_hex(std::string_view& text, unsigned& value) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) noexcept {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) noexcept {
  PciAddress address;
  if (!take_hex(text, address.bus) || !take(text, ':') || !take_hex(text, address.device))
    return std::nullopt;
  if (take(text, ':')) {
    address.domain = address.bus;
    address.bus = address.device;
    if (!take_hex(text, address.device)) return std::nullopt;
  }
  unsigned function = 0;
  if (take(text, '.') && !take_hex(text, function)) return std::nullopt;
  return text.empty() ? std::optional(address) : std::nullopt;
}

bool is_at(const Device& device, const PciAddress& address) noexcept {
  return static_cast<unsigned>(device.pci_domain) == address.domain &&
         static_cast<unsigned>(device.pci_bus) == address.bus &&
         static_cast<unsigned>(device.pci_device) == address.device;
}

}  // namespace kshim::sim
