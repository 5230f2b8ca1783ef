// SPDX-License-Identifier: Apache-2.0
#include "launch/launch.h"

#include <algorithm>
#include <cstring>

#include "base/settings.h"
#include "context/context.h"
#include "graph/capture.h"
#include "graph/kernel_operation.h"
#include "launch/stream.h"
#include "modules/module.h"
#include "occupancy/occupancy.h"

namespace kshim::sim {
namespace {

constexpr Extent kMaxThreads{1024, 1024, 64};
constexpr std::uint64_t kMaxThreadsTogether = 1024;
constexpr Extent kMaxBlocks{2147483647, 65535, 65535};

bool within(const Extent& extent, const Extent& most) noexcept {
  return !extent.empty() && extent.x <= most.x && extent.y <= most.y && extent.z <= most.z;
}

/// Parses `extra`: CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE, ended by CU_LAUNCH_PARAM_END.
struct ExtraArguments {
  const void* buffer = nullptr;
  std::size_t size = 0;
};
bool read_extra(void** extra, ExtraArguments& out) noexcept {
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      out.buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      if (extra[1] == nullptr) return false;
      out.size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return false;
    }
  }
  return true;
}

bool arguments_suffice(const Function& function, const Launch& launch) noexcept {
  if (launch.parameters != nullptr && launch.extra != nullptr) return false;
  if (function.code.parameters.empty() || launch.parameters != nullptr) return true;
  // A buffer may end before the last parameter does: NCCL passes the used part of a parameter of 4096 bytes.
  ExtraArguments given;
  return launch.extra != nullptr && read_extra(launch.extra, given) && given.buffer != nullptr &&
         given.size != 0;
}

CUresult check_cluster(const Function& function, const Launch& launch) noexcept {
  constexpr image::ComputeCapability kFirst{9, 0};
  const unsigned blocks = cluster_blocks(launch, function.settings);
  if (blocks == 1) return CUDA_SUCCESS;
  const bool large = function.settings.non_portable_cluster.load(std::memory_order_relaxed) != 0;
  if (blocks == 0 || blocks > (large ? kMaxClusterBytes : kPortableCluster))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (function.module.context.device.limits.cc < kFirst) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const Extent& cluster = launch.cluster;
  if (cluster.empty()) return CUDA_SUCCESS;
  const bool divides =
      launch.grid.x % cluster.x == 0 && launch.grid.y % cluster.y == 0 && launch.grid.z % cluster.z == 0;
  return divides ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult check_cooperative(const Function& function, const Launch& launch) noexcept {
  const Device& device = function.module.context.device;
  int supported = 0;
  device_attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, supported);
  if (supported == 0) return CUDA_ERROR_NOT_SUPPORTED;
  int blocks = 0;
  const auto threads = static_cast<int>(launch.block.count());
  if (const CUresult r = active_blocks(function, threads, launch.shared, blocks); r != CUDA_SUCCESS) return r;
  const auto resident =
      static_cast<std::uint64_t>(blocks) * static_cast<unsigned>(device.product.multiprocessors);
  return launch.grid.count() <= resident ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

}  // namespace

Launch launch_of(const CUlaunchConfig& config) noexcept {
  Launch launch;
  launch.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  launch.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  launch.shared = config.sharedMemBytes;
  for (unsigned i = 0; config.attrs != nullptr && i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      launch.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                        attribute.value.clusterDim.z};
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      launch.cooperative = attribute.value.cooperative != 0;
    }
  }
  return launch;
}

unsigned cluster_blocks(const Launch& launch, const FunctionSettings& settings) noexcept {
  Extent cluster = launch.cluster;
  if (cluster.empty()) {
    const auto required = [](const std::atomic<int>& size) {
      const int value = size.load(std::memory_order_relaxed);
      return value > 0 ? static_cast<unsigned>(value) : 1U;
    };
    cluster = {required(settings.cluster_width), required(settings.cluster_height),
               required(settings.cluster_depth)};
  }
  constexpr unsigned kBeyondAll = 1024;
  if (cluster.x > kBeyondAll || cluster.y > kBeyondAll || cluster.z > kBeyondAll) return 0;
  return static_cast<unsigned>(cluster.count());
}

CUresult check_launch(const Function& function, const Launch& launch) noexcept {
  if (!within(launch.grid, kMaxBlocks) || !within(launch.block, kMaxThreads)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t threads = launch.block.count();
  if (threads > kMaxThreadsTogether) return CUDA_ERROR_INVALID_VALUE;
  const Device& device = function.module.context.device;
  if (launch.shared > static_cast<unsigned>(most_dynamic_shared(function.code, function.settings))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!arguments_suffice(function, launch)) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.launch_bound) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.most_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (const CUresult result = check_cluster(function, launch); result != CUDA_SUCCESS) return result;
  if (static_shared(function.code) > device.limits.shared_optin) return CUDA_ERROR_INVALID_VALUE;
  return launch.cooperative ? check_cooperative(function, launch) : CUDA_SUCCESS;
}

bool copy_arguments(const Function& function, const Launch& launch, std::vector<std::byte>& out) {
  const KernelCode& code = function.code;
  out.assign(code.parameter_bytes(), std::byte{0});
  if (out.empty()) return true;
  if (launch.parameters != nullptr) {
    for (std::size_t i = 0; i < code.parameters.size(); ++i) {
      if (launch.parameters[i] == nullptr) return false;
      std::memcpy(out.data() + code.parameters[i].offset, launch.parameters[i], code.parameters[i].size);
    }
    return true;
  }
  ExtraArguments given;
  if (launch.extra == nullptr || !read_extra(launch.extra, given) || given.buffer == nullptr) return false;
  std::memcpy(out.data(), given.buffer, std::min(given.size, out.size()));
  return true;
}

namespace {

/// KSHIM_SIM_FAULT: the kernel faults, and the next call returns the error; the launch itself if it is
/// synchronous.
CUresult fault_of(const Function& function, Context& context) {
  const FaultRule& rule = settings().fault;
  if (rule.kernel.empty() || function.name.find(rule.kernel) == std::string::npos) return CUDA_SUCCESS;
  context.fault.store(rule.code, std::memory_order_relaxed);
  return settings().blocking ? static_cast<CUresult>(rule.code) : CUDA_SUCCESS;
}

}  // namespace

CUresult launch_kernel(CUfunction handle, const Launch& launch, CUstream stream_handle) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, *context, function); found != CUDA_SUCCESS) return found;
  if (const CUresult fits = check_launch(*function, launch); fits != CUDA_SUCCESS) return fits;
  Stream* stream = context->stream(stream_handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!function->loaded.load(std::memory_order_relaxed))
    function->loaded.store(true, std::memory_order_relaxed);
  if (const CUresult fault = fault_of(*function, *context); fault != CUDA_SUCCESS) return fault;
  if (!any_capture()) return CUDA_SUCCESS;  // nothing runs, so there is nothing to put in order
  KernelOperation operation(handle, *function, launch);
  return operation.complete() ? enqueue(*stream, operation) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace kshim::sim
