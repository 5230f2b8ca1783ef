// SPDX-License-Identifier: Apache-2.0
// Device management.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/handles.h"
#include "context/context.h"
#include "device/pci.h"
#include "device/product.h"
#include "entry/entry.h"
#include "memory/array.h"

namespace kshim::sim {
namespace {

struct AsyncNotification : Handled<Kind::async_notification> {
  AsyncNotification() { publish(this); }
};

/// 3, 101, or the device.
CUresult require_device(CUdevice ordinal, const Device*& device) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  device = device_at(ordinal);
  return device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult entry::cuDeviceGetCount(int* count) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(devices().size());
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGet(CUdevice* device, int ordinal) {
  const Device* found = nullptr;
  if (const CUresult result = require_device(ordinal, found); result != CUDA_SUCCESS) return result;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", device->name.c_str());
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *uuid = device->gpu_uuid;
  return CUDA_SUCCESS;
}
CUresult entry::cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->memory_bytes;
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int found = 0;
  if (!device_attribute(*device, attribute, found)) return CUDA_ERROR_INVALID_VALUE;
  *value = found;
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = static_cast<int>(device->limits.cc.major);
  *minor = static_cast<int>(device->limits.cc.minor);
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto value = [&](CUdevice_attribute attribute) {
    int found = 0;
    device_attribute(*device, attribute, found);
    return found;
  };
  CUdevprop& p = *properties;
  p.maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.maxThreadsDim[0] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  p.maxThreadsDim[1] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  p.maxThreadsDim[2] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  p.maxGridSize[0] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  p.maxGridSize[1] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  p.maxGridSize[2] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  p.sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p.SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p.memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p.regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p.clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  p.textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (text == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:%02x.0",
                static_cast<unsigned>(device->pci_domain), static_cast<unsigned>(device->pci_bus),
                static_cast<unsigned>(device->pci_device));
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetByPCIBusId(CUdevice* found, const char* text) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (found == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto address = parse_pci_address(text);
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  for (const Device& device : devices()) {
    if (is_at(device, *address)) {
      *found = device.ordinal;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult entry::cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType type, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (value == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  *value = 0;  // only under MPS, which is not simulated
  return CUDA_SUCCESS;
}

// Peers: any two devices reach each other, as on a board with a common switch (assumed; real cards differ)
// -------------

CUresult entry::cuDeviceCanAccessPeer(int* can, CUdevice from, CUdevice to) {
  const Device* one = nullptr;
  const Device* other = nullptr;
  if (const CUresult result = require_device(from, one); result != CUDA_SUCCESS) return result;
  if (const CUresult result = require_device(to, other); result != CUDA_SUCCESS) return result;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = one != other ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult entry::cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                        CUdevice to) {
  const Device* one = nullptr;
  const Device* other = nullptr;
  if (const CUresult result = require_device(from, one); result != CUDA_SUCCESS) return result;
  if (const CUresult result = require_device(to, other); result != CUDA_SUCCESS) return result;
  if (one == other) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// As many elements as 4 GiB hold, and 2^30 at most: an RTX 3060's answers (tests/sim/ledger).
CUresult entry::cuDeviceGetTexture1DLinearMaxWidth(std::size_t* width, CUarray_format format,
                                                   unsigned channels, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  const std::size_t element = element_bytes(format, channels);
  if (width == nullptr || element == 0) return CUDA_ERROR_INVALID_VALUE;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  *width = std::min(kMost, (std::size_t{1} << 32) / element);
  return CUDA_SUCCESS;
}

// LUIDs are Windows's.
CUresult entry::cuDeviceGetLuid(char* luid, unsigned* mask, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  return luid == nullptr || mask == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

namespace {

/// No atomic operation reaches the host's memory or another device's.
CUresult no_atomics(unsigned* capabilities, const CUatomicOperation* operations, unsigned count) noexcept {
  if (capabilities == nullptr || operations == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (operations[i] < CU_ATOMIC_OPERATION_INTEGER_ADD || operations[i] > CU_ATOMIC_OPERATION_FLOAT_MAX)
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::fill_n(capabilities, count, 0U);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations,
                                                  unsigned count, CUdevice ordinal) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  return no_atomics(capabilities, operations, count);
}
CUresult entry::cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations,
                                                 unsigned count, CUdevice from, CUdevice to) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(from, device); result != CUDA_SUCCESS) return result;
  if (const CUresult result = require_device(to, device); result != CUDA_SUCCESS) return result;
  return from == to ? CUDA_ERROR_INVALID_DEVICE : no_atomics(capabilities, operations, count);
}

// Nothing is ever notified of: no budget changes, no other process shares the device.
CUresult entry::cuDeviceRegisterAsyncNotification(CUdevice ordinal, CUasyncCallback callback, void*,
                                                  CUasyncCallbackHandle* out) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  if (callback == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = (new AsyncNotification)->handle<CUasyncCallbackHandle>();
  return CUDA_SUCCESS;
}
CUresult entry::cuDeviceUnregisterAsyncNotification(CUdevice ordinal, CUasyncCallbackHandle handle) {
  const Device* device = nullptr;
  if (const CUresult result = require_device(ordinal, device); result != CUDA_SUCCESS) return result;
  auto* registered = object_of<AsyncNotification>(handle);
  if (registered == nullptr) return CUDA_ERROR_INVALID_VALUE;
  delete registered;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
