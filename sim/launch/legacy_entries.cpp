// SPDX-License-Identifier: Apache-2.0
// The launch calls of CUDA 2 and 3, which PyCUDA still makes: the block, its shared memory and the parameters
// are kept with the function until cuLaunch*.
#include <cstring>

#include "context/context.h"
#include "entry/entry.h"
#include "launch/launch.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

CUresult put(CUfunction handle, int offset, const void* from, std::size_t bytes) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  constexpr std::size_t kMost = 4096;  // bytes of parameters, as those calls know them
  if (offset < 0 || from == nullptr || static_cast<std::size_t>(offset) + bytes > kMost)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(function->module.context.lock);
  auto& parameters = function->legacy.parameters;
  if (parameters.size() < static_cast<std::size_t>(offset) + bytes)
    parameters.resize(static_cast<std::size_t>(offset) + bytes);
  std::memcpy(parameters.data() + offset, from, bytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(function->module.context.lock);
  function->legacy.block[0] = static_cast<unsigned>(x);
  function->legacy.block[1] = static_cast<unsigned>(y);
  function->legacy.block[2] = static_cast<unsigned>(z);
  return CUDA_SUCCESS;
}

CUresult entry::cuFuncSetSharedSize(CUfunction handle, unsigned bytes) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  const std::lock_guard guard(function->module.context.lock);
  function->legacy.shared = bytes;
  return CUDA_SUCCESS;
}

CUresult entry::cuParamSetSize(CUfunction handle, unsigned bytes) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (bytes < function->code.parameter_bytes()) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(function->module.context.lock);
  function->legacy.parameters.resize(bytes);
  return CUDA_SUCCESS;
}
CUresult entry::cuParamSeti(CUfunction handle, int offset, unsigned value) {
  return put(handle, offset, &value, sizeof value);
}
CUresult entry::cuParamSetf(CUfunction handle, int offset, float value) {
  return put(handle, offset, &value, sizeof value);
}
CUresult entry::cuParamSetv(CUfunction handle, int offset, void* from, unsigned bytes) {
  return put(handle, offset, from, bytes);
}

CUresult entry::cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  LegacyLaunch kept;
  {
    const std::lock_guard guard(function->module.context.lock);
    kept = function->legacy;
  }
  std::size_t bytes = kept.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, kept.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  Launch launch;
  launch.grid = {static_cast<unsigned>(width), static_cast<unsigned>(height), 1};
  launch.block = {kept.block[0], kept.block[1], kept.block[2]};
  launch.shared = kept.shared;
  if (bytes != 0) launch.extra = extra;
  return launch_kernel(handle, launch, stream);
}
CUresult entry::cuLaunchGrid(CUfunction handle, int width, int height) {
  return entry::cuLaunchGridAsync(handle, width, height, nullptr);
}
CUresult entry::cuLaunch(CUfunction handle) { return entry::cuLaunchGridAsync(handle, 1, 1, nullptr); }

}  // namespace kshim::sim
