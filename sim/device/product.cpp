// SPDX-License-Identifier: Apache-2.0
#include "device/product.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <vector>

#include "base/log.h"
#include "base/settings.h"
#include "kshim/base/hash.h"
#include "kshim/base/visible_devices.h"

namespace kshim::sim {
namespace {

constexpr Limits kLimits[] = {
#define KSHIM_SIM_LIMITS(major, minor, threads, blocks, shared, optin, registers, block_registers, reserved, \
                         integrated, fp64_ratio)                                                             \
  {{major, minor},         threads,  blocks,     (shared)*1024, (optin)*1024, (registers)*1024,              \
   (block_registers)*1024, reserved, integrated, fp64_ratio},
#include "kshim/knowledge/gpus.def"
};

constexpr Product kProducts[] = {
#define KSHIM_SIM_PRODUCT(major, minor, name, sms, core, memory, bus, l2, mib) \
  {{major, minor}, name, sms, core, memory, bus, (l2)*1024, std::uint64_t{mib} << 20},
#include "kshim/knowledge/gpus.def"
};

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

/// Stable over runs and machines, distinct per position: reports of simulated runs can be compared.
CUuuid uuid_of(const Device& device, std::string_view name) {
  const std::string seed =
      "kshim simulated device " + std::to_string(device.pci_bus) + " " + std::string(name);
  const std::uint64_t halves[2] = {key_hash(bytes_of(seed)), key_hash(bytes_of(seed), 0x9e3779b97f4a7c15ULL)};
  CUuuid uuid;
  std::memcpy(uuid.bytes, halves, sizeof uuid.bytes);
  uuid.bytes[6] =
      static_cast<char>((uuid.bytes[6] & 0x0f) | 0x50);  // RFC 4122: version 5, as a name-based id
  uuid.bytes[8] = static_cast<char>((uuid.bytes[8] & 0x3f) | 0x80);
  return uuid;
}

Device make_device(const RequestedDevice& requested, std::size_t position) {
  Device device;
  device.limits = *find_limits(requested.cc);
  device.product = find_product(requested.cc, requested.name);
  device.name = requested.name.empty() ? std::string(device.product.name) : requested.name;
  if (!requested.name.empty() && contains(device.product.name, requested.name))
    device.name = device.product.name;
  device.name += " (simulated)";
  device.memory_bytes = settings().memory != 0 ? settings().memory : device.product.memory_bytes;
  device.pci_bus = static_cast<int>(position) + 1;
  device.gpu_uuid =
      uuid_of(device, device.is_instance() ? device.product.name : std::string_view(device.name));
  device.uuid = uuid_of(device, device.name);
  return device;
}

std::vector<Device> visible(std::span<const Device> all) {
  if (!settings().visible.has_value()) return {all.begin(), all.end()};
  const auto find = [&](std::string_view item) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool by_uuid = item.size() > 4 && uuid_text(all[i]).starts_with(item);
      if (by_uuid || item == std::to_string(all[i].pci_bus - 1)) return i;
    }
    return std::nullopt;
  };
  std::vector<Device> chosen;
  for (const std::size_t i : read_visible_devices(*settings().visible, find).shown) chosen.push_back(all[i]);
  return chosen;
}

void count_off(std::vector<Device>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) list[i].ordinal = static_cast<int>(i);
}

std::vector<Device> make_all_devices() {
  std::vector<Device> all;
  for (const RequestedDevice& requested : settings().devices)
    all.push_back(make_device(requested, all.size()));
  count_off(all);
  return all;
}

std::vector<Device> make_devices() {
  std::vector<Device> result = visible(all_devices());
  count_off(result);
  return result;
}

}  // namespace

const Limits* find_limits(image::ComputeCapability cc) noexcept {
  const auto* found =
      std::find_if(std::begin(kLimits), std::end(kLimits), [&](const Limits& row) { return row.cc == cc; });
  return found == std::end(kLimits) ? nullptr : found;
}

const Product& find_product(image::ComputeCapability cc, std::string_view wanted) noexcept {
  const Product* first = nullptr;
  for (const Product& product : kProducts) {
    if (product.cc != cc) continue;
    if (first == nullptr) first = &product;
    if (!wanted.empty() && contains(product.name, wanted)) return product;
  }
  return first != nullptr ? *first : kProducts[0];
}

std::string uuid_text(const Device& device) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = device.is_instance() ? "MIG-" : "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(device.uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::span<const Device> all_devices() noexcept {
  static const std::vector<Device>& list = *new std::vector<Device>(make_all_devices());
  return list;
}

std::span<const Device> devices() noexcept {
  static const std::vector<Device>& list = *new std::vector<Device>(make_devices());
  return list;
}

const Device* device_at(CUdevice ordinal) noexcept {
  const auto list = devices();
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < list.size()
             ? &list[static_cast<std::size_t>(ordinal)]
             : nullptr;
}

}  // namespace kshim::sim
