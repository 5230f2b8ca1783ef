// SPDX-License-Identifier: Apache-2.0
#include "occupancy/occupancy.h"

#include <cuda_occupancy.h>

#include <algorithm>

#include "context/context.h"
#include "entry/entry.h"
#include "launch/launch.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

struct Problem {
  cudaOccDeviceProp device;
  cudaOccFuncAttributes function;
  cudaOccDeviceState state;
};

int attribute_of(const Device& device, CUdevice_attribute number) noexcept {
  int value = 0;
  device_attribute(device, number, value);
  return value;
}

Problem problem_of(const Function& function) noexcept {
  const Device& d = function.module.context.device;
  const auto size = [&](CUdevice_attribute number) {
    return static_cast<std::size_t>(attribute_of(d, number));
  };
  const auto of_function = [&](CUfunction_attribute number) {
    int value = 0;
    function_attribute(function.code, function.settings, d, number, value);
    return value;
  };
  Problem p;
  p.device.computeMajor = d.limits.cc.major;
  p.device.computeMinor = d.limits.cc.minor;
  p.device.maxThreadsPerBlock = attribute_of(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.device.maxThreadsPerMultiprocessor = attribute_of(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p.device.regsPerBlock = attribute_of(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p.device.regsPerMultiprocessor = attribute_of(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p.device.warpSize = attribute_of(d, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p.device.numSms = attribute_of(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.device.sharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.device.sharedMemPerMultiprocessor = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.device.sharedMemPerBlockOptin = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.device.reservedSharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  p.function.maxThreadsPerBlock = of_function(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.function.numRegs = of_function(CU_FUNC_ATTRIBUTE_NUM_REGS);
  p.function.sharedSizeBytes = static_cast<std::size_t>(of_function(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  p.function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  p.function.maxDynamicSharedSizeBytes =
      static_cast<std::size_t>(of_function(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  p.function.numBlockBarriers = 1;
  p.state.carveoutConfig = of_function(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  return p;
}

CUresult result_of(cudaOccError error) noexcept {
  switch (error) {
    case CUDA_OCC_SUCCESS:
      return CUDA_SUCCESS;
    case CUDA_OCC_ERROR_INVALID_INPUT:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;  // a compute capability younger than the toolkit this was built with
  }
}

/// A cluster lies in one GPC. Data center GPUs of 9.0 and 10.x have eight, among which pairs of
/// multiprocessors are divided evenly here; of others nothing is known, and any multiprocessors may share
/// one.
int clusters_at_once(const Device& device, int blocks, int cluster) noexcept {
  const int all = device.product.multiprocessors;
  const bool grouped =
      device.limits.cc.major == 9 || (device.limits.cc.major == 10 && !device.limits.integrated);
  if (!grouped) return blocks * all / cluster;
  constexpr int kGroups = 8;
  int clusters = 0;
  for (int group = 0; group < kGroups; ++group) {
    const int pairs = (all / 2 + kGroups - 1 - group) / kGroups;
    clusters += pairs * 2 * blocks / cluster;
  }
  return clusters;
}

/// Blocks a cluster may have here, 0 where the device has no clusters.
unsigned largest_cluster(const Function& function) noexcept {
  constexpr image::ComputeCapability kFirst{9, 0};
  if (function.module.context.device.limits.cc < kFirst) return 0;
  return function.settings.non_portable_cluster.load(std::memory_order_relaxed) != 0 ? kMaxClusterBytes
                                                                                     : kPortableCluster;
}

}  // namespace

CUresult active_blocks(const Function& function, int threads, std::size_t dynamic_shared,
                       int& blocks) noexcept {
  const Problem p = problem_of(function);
  blocks = 0;
  if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  cudaOccResult result;
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &p.device, &p.function,
                                                                     &p.state, threads, dynamic_shared);
  if (error == CUDA_OCC_SUCCESS) blocks = result.activeBlocksPerMultiprocessor;
  return result_of(error);
}

CUresult entry::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                                     int threads, std::size_t dynamic_shared,
                                                                     unsigned int flags) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (blocks == nullptr || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return active_blocks(*function, threads, dynamic_shared, *blocks);
}

CUresult entry::cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads,
                                                            std::size_t dynamic_shared) {
  return entry::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, dynamic_shared,
                                                                     0);
}

CUresult entry::cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction handle,
                                                          CUoccupancyB2DSize shared_of_block,
                                                          std::size_t dynamic_shared, int limit,
                                                          unsigned int flags) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (grid == nullptr || block == nullptr || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Problem p = problem_of(*function);
  if (limit > 0) p.device.maxThreadsPerBlock = std::min(p.device.maxThreadsPerBlock, limit);
  return result_of(cudaOccMaxPotentialOccupancyBlockSize(grid, block, &p.device, &p.function, &p.state,
                                                         shared_of_block, dynamic_shared));
}

CUresult entry::cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle,
                                                 CUoccupancyB2DSize shared_of_block,
                                                 std::size_t dynamic_shared, int limit) {
  return entry::cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of_block,
                                                          dynamic_shared, limit, 0);
}

CUresult entry::cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction handle, int blocks,
                                                        int threads) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Problem p = problem_of(*function);
  const std::size_t allowed = p.function.maxDynamicSharedSizeBytes;
  p.function.maxDynamicSharedSizeBytes = p.device.sharedMemPerBlockOptin;
  std::size_t available = 0;
  const CUresult result = result_of(
      cudaOccAvailableDynamicSMemPerBlock(&available, &p.device, &p.function, &p.state, blocks, threads));
  if (result != CUDA_SUCCESS) return result;
  // A card takes what it reserves for each block off, too, and gives no more than a launch may ask for.
  if (blocks > 1) available -= std::min(available, p.device.reservedSharedMemPerBlock);
  *bytes = std::min(available, allowed);
  return CUDA_SUCCESS;
}

CUresult entry::cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle,
                                                   const CUlaunchConfig* config) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (size == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned largest = largest_cluster(*function);
  if (largest == 0 && !launch_of(*config).cluster.empty()) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *size = static_cast<int>(largest);
  return CUDA_SUCCESS;
}

CUresult entry::cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned largest = largest_cluster(*function);
  const Launch launch = launch_of(*config);
  if (largest == 0) {  // no clusters here: an RTX 3060's answers
    *clusters = launch.cluster.empty() ? 0 : *clusters;
    return launch.cluster.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const unsigned cluster = cluster_blocks(launch, function->settings);
  if (cluster == 0 || (cluster > largest && largest < kMaxClusterBytes))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (cluster > largest) {  // of any size is allowed, and none fits: cuTENSOR asks for up to 32
    *clusters = 0;
    return CUDA_SUCCESS;
  }
  int blocks = 0;
  const auto threads = static_cast<int>(launch.block.count());
  if (const CUresult r = active_blocks(*function, threads, launch.shared, blocks); r != CUDA_SUCCESS)
    return r;
  *clusters = clusters_at_once(function->module.context.device, blocks, static_cast<int>(cluster));
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
