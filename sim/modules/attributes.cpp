// SPDX-License-Identifier: Apache-2.0
// Attributes of functions: cuda.h 13.0, CUfunction_attribute.
#include <algorithm>

#include "device/product.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

constexpr int kDefaultShared = 48 * 1024;  // bytes a block without opt-in, static and dynamic together
constexpr int kWarp = 32;

/// What PTX compiled at load would use is not known: 32, a common figure, stated in
/// docs/internals/simulator.md.
constexpr int kAssumedRegisters = 32;

int known(std::uint32_t value, int otherwise) noexcept {
  return value == image::KernelInfo::kUnknown || value > INT32_MAX ? otherwise : static_cast<int>(value);
}

int registers_of(const KernelCode& code) noexcept { return known(code.info.registers, kAssumedRegisters); }

}  // namespace

int launch_bound(const KernelCode& code) noexcept {
  constexpr int kMax = 1024;
  return std::min(kMax, known(code.info.max_threads, kMax));
}

/// Registers are given to warps in units of 256, and warps to four schedulers (cuda_occupancy.h).
int most_threads(const KernelCode& code, const Device& device) noexcept {
  constexpr int kUnit = 256;
  constexpr int kSchedulers = 4;
  const int per_warp = (registers_of(code) * kWarp + kUnit - 1) / kUnit * kUnit;
  int threads = launch_bound(code);
  if (per_warp > 0) {
    const int warps = device.limits.registers_per_block / per_warp / kSchedulers * kSchedulers;
    threads = std::min(threads, warps * kWarp);
  }
  return threads;
}

int static_shared(const KernelCode& code) noexcept { return known(code.info.shared_bytes, 0); }

int most_dynamic_shared(const KernelCode& code, const FunctionSettings& settings) noexcept {
  const int set = settings.max_dynamic_shared.load(std::memory_order_relaxed);
  return set >= 0 ? set : std::max(0, kDefaultShared - static_shared(code));
}

CUresult parameter_info(const KernelCode& code, std::size_t index, std::size_t* offset,
                        std::size_t* size) noexcept {
  if (offset == nullptr || index >= code.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = code.parameters[index].offset;
  if (size != nullptr) *size = code.parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult function_attribute(const KernelCode& code, const FunctionSettings& settings, const Device& device,
                            CUfunction_attribute attribute, int& value) noexcept {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      value = most_threads(code, device);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      value = static_shared(code);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      value = known(code.info.constant_bytes, 0);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      value = known(code.info.local_bytes, 0);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      value = registers_of(code);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      value = code.ptx_version;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      value = code.binary_version;
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      value = 0;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      value = most_dynamic_shared(code, settings);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value = settings.carveout.load(std::memory_order_relaxed);
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      value = 0;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      value = settings.cluster_width.load(std::memory_order_relaxed);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      value = settings.cluster_height.load(std::memory_order_relaxed);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      value = settings.cluster_depth.load(std::memory_order_relaxed);
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      value = settings.non_portable_cluster.load(std::memory_order_relaxed);
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value = settings.cluster_policy.load(std::memory_order_relaxed);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult set_function_attribute(const KernelCode& code, FunctionSettings& settings, const Device& device,
                                CUfunction_attribute attribute, int value) noexcept {
  const auto set = [value](std::atomic<int>& target, int low, int high) {
    if (value < low || value > high) return CUDA_ERROR_INVALID_VALUE;
    target.store(value, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return set(settings.max_dynamic_shared, 0, device.limits.shared_optin - static_shared(code));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return set(settings.carveout, -1, 100);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return set(settings.cluster_width, 0, INT32_MAX);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return set(settings.cluster_height, 0, INT32_MAX);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return set(settings.cluster_depth, 0, INT32_MAX);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      settings.non_portable_cluster.store(value != 0 ? 1 : 0, std::memory_order_relaxed);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return set(settings.cluster_policy, CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
                 CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    default:
      return CUDA_ERROR_INVALID_VALUE;  // the others are read-only
  }
}

}  // namespace kshim::sim
