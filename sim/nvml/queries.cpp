// SPDX-License-Identifier: Apache-2.0
// Queries of a device.
#include <atomic>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "nvml/library.h"

namespace kshim::sim::nvml {
namespace {

constexpr unsigned kVendor = 0x10de;  // NVIDIA's, as assigned by the PCI-SIG

/// A function that is not simulated; the first call is logged. Each function has its own `told`.
Result refuse(const Handle* handle, const char* name, std::atomic<bool>& told) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, handle, device); result != Result::success) return result;
  if (log_level() >= LogLevel::info && !told.exchange(true)) {
    std::string line(name);
    line.append(" is not simulated: 3, not supported");
    log_line(LogLevel::info, line);
  }
  return Result::not_supported;
}

}  // namespace

Result nvmlDeviceGetIndex(Handle* handle, unsigned* index) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, index, device); result != Result::success) return result;
  *index = static_cast<unsigned>(device->ordinal);
  return Result::success;
}

// The N of /dev/nvidiaN, which does not exist.
Result nvmlDeviceGetMinorNumber(Handle* handle, unsigned* minor) noexcept {
  return nvmlDeviceGetIndex(handle, minor);
}

Result nvmlDeviceGetName(Handle* handle, char* name, unsigned length) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, name, device); result != Result::success) return result;
  return put_text(device->name, name, length);
}

Result nvmlDeviceGetUUID(Handle* handle, char* uuid, unsigned length) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, uuid, device); result != Result::success) return result;
  return put_text(uuid_text(*device), uuid, length);
}

Result nvmlDeviceGetPciInfo_v3(Handle* handle, PciInfo* info) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, info, device); result != Result::success) return result;
  *info = {};
  info->domain = static_cast<unsigned>(device->pci_domain);
  info->bus = static_cast<unsigned>(device->pci_bus);
  info->device = static_cast<unsigned>(device->pci_device);
  info->device_id = kVendor;
  std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0", info->domain & 0xffff,
                info->bus & 0xff, info->device & 0x1f);
  std::snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus, info->device);
  return Result::success;
}

// Used memory is always 0: only the libcuda.so.1 of a process knows what that process allocates.
Result nvmlDeviceGetMemoryInfo(Handle* handle, Memory* memory) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, memory, device); result != Result::success) return result;
  *memory = {device->memory_bytes, device->memory_bytes, 0};
  return Result::success;
}

Result nvmlDeviceGetMemoryInfo_v2(Handle* handle, MemoryV2* memory) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, memory, device); result != Result::success) return result;
  if (memory->version != kMemoryV2) return Result::argument_version_mismatch;
  *memory = {kMemoryV2, device->memory_bytes, 0, device->memory_bytes, 0};
  return Result::success;
}

Result nvmlDeviceGetComputeMode(Handle* handle, ComputeMode* mode) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, mode, device); result != Result::success) return result;
  *mode = ComputeMode::standard;
  return Result::success;
}

Result nvmlDeviceGetCudaComputeCapability(Handle* handle, int* major, int* minor) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(handle, major, device); result != Result::success) return result;
  if (minor == nullptr) return Result::invalid_argument;
  *major = static_cast<int>(device->limits.cc.major);
  *minor = static_cast<int>(device->limits.cc.minor);
  return Result::success;
}

// As cuDeviceCanAccessPeer and cuDeviceGetP2PAttribute of the simulator: any two devices reach each other,
// over PCI and without atomics. NCCL asks for a device and itself, too, and takes a failure for one of the
// system.
Result nvmlDeviceGetP2PStatus(Handle* one, Handle* other, PeerQuestion question,
                              PeerStatus* status) noexcept {
  const Device* device = nullptr;
  if (const Result result = require_device(one, status, device); result != Result::success) return result;
  if (device_of(other) == nullptr) return Result::invalid_argument;
  switch (question) {
    case PeerQuestion::read:
    case PeerQuestion::write:
    case PeerQuestion::pci:
      *status = PeerStatus::ok;
      return Result::success;
    case PeerQuestion::nvlink:
    case PeerQuestion::atomics:
      *status = PeerStatus::not_supported;
      return Result::success;
  }
  return Result::invalid_argument;
}

extern "C" {
#define KSHIM_NVML_NOT_SIMULATED(name)                                       \
  [[gnu::visibility("default")]] Result name(const Handle* handle) noexcept; \
  Result name(const Handle* handle) noexcept {                               \
    static constinit std::atomic<bool> told{false};                          \
    return refuse(handle, #name, told);                                      \
  }
#include "nvml/not_simulated.def"
#undef KSHIM_NVML_NOT_SIMULATED
}

}  // namespace kshim::sim::nvml
