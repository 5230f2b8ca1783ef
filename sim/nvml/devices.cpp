// SPDX-License-Identifier: Apache-2.0
// Finding devices.
#include "device/pci.h"
#include "nvml/library.h"

namespace kshim::sim::nvml {
namespace {

Handle* handle_of(const Device& device) noexcept {
  return reinterpret_cast<Handle*>(const_cast<Device*>(&device));
}

/// 1, 2 or 6, or success with the first device that `matches`.
template <class Matches>
Result find(Handle** out, Matches matches) noexcept {
  for (const Device& device : all_devices()) {
    if (matches(device)) {
      *out = handle_of(device);
      return Result::success;
    }
  }
  return Result::not_found;
}

}  // namespace

const Device* device_of(const Handle* handle) noexcept {
  for (const Device& device : all_devices()) {
    if (handle_of(device) == handle) return &device;
  }
  return nullptr;
}

Result require_device(const Handle* handle, const void* out, const Device*& device) noexcept {
  if (const Result result = check_initialized(); result != Result::success) return result;
  device = device_of(handle);
  return device != nullptr && out != nullptr ? Result::success : Result::invalid_argument;
}

Result nvmlDeviceGetCount_v2(unsigned* count) noexcept {
  if (const Result result = check_initialized(); result != Result::success) return result;
  if (count == nullptr) return Result::invalid_argument;
  *count = static_cast<unsigned>(all_devices().size());
  return Result::success;
}
Result nvmlDeviceGetCount(unsigned* count) noexcept { return nvmlDeviceGetCount_v2(count); }

Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle** device) noexcept {
  if (const Result result = check_initialized(); result != Result::success) return result;
  if (device == nullptr || index >= all_devices().size()) return Result::invalid_argument;
  *device = handle_of(all_devices()[index]);
  return Result::success;
}
Result nvmlDeviceGetHandleByIndex(unsigned index, Handle** device) noexcept {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

Result nvmlDeviceGetHandleByPciBusId_v2(const char* text, Handle** device) noexcept {
  if (const Result result = check_initialized(); result != Result::success) return result;
  if (text == nullptr || device == nullptr) return Result::invalid_argument;
  const auto address = parse_pci_address(text);
  if (!address) return Result::invalid_argument;
  return find(device, [&](const Device& one) { return is_at(one, *address); });
}
Result nvmlDeviceGetHandleByPciBusId(const char* text, Handle** device) noexcept {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

Result nvmlDeviceGetHandleByUUID(const char* uuid, Handle** device) noexcept {
  if (const Result result = check_initialized(); result != Result::success) return result;
  if (uuid == nullptr || device == nullptr) return Result::invalid_argument;
  return find(device, [&](const Device& one) { return uuid_text(one) == uuid; });
}

}  // namespace kshim::sim::nvml
