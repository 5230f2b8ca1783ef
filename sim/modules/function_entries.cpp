// SPDX-License-Identifier: Apache-2.0
// cuFunc*. Most answer 1 for null, and 400 for another handle that is none (tests/sim/ledger).
#include "context/context.h"
#include "entry/entry.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

/// What is asked of a function: null is no argument.
CUresult find_asked(CUfunction handle, Function*& out) {
  const CUresult found = find_function(handle, out);
  return found == CUDA_ERROR_INVALID_HANDLE && handle == nullptr ? CUDA_ERROR_INVALID_VALUE : found;
}

/// Attributes are a function's alone: a CUkernel has cuKernelGetAttribute.
bool is_kernel(CUfunction handle) noexcept { return object_of<Kernel>(handle) != nullptr; }

}  // namespace

CUresult entry::cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (is_kernel(handle)) return CUDA_ERROR_INVALID_HANDLE;
  Function* function = nullptr;
  if (const CUresult found = find_asked(handle, function); found != CUDA_SUCCESS) return found;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  function->loaded.store(true, std::memory_order_relaxed);
  return function_attribute(function->code, function->settings, function->module.context.device, attribute,
                            *value);
}

CUresult entry::cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  if (is_kernel(handle)) return CUDA_ERROR_INVALID_HANDLE;
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  return set_function_attribute(function->code, function->settings, function->module.context.device,
                                attribute, value);
}

CUresult entry::cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  return config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuFuncGetModule(CUmodule* module, CUfunction handle) {
  Function* function = nullptr;
  if (const CUresult found = find_asked(handle, function); found != CUDA_SUCCESS) return found;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = function->module.handle<CUmodule>();
  return CUDA_SUCCESS;
}

CUresult entry::cuFuncGetName(const char** name, CUfunction handle) {
  Function* function = nullptr;
  if (const CUresult found = find_asked(handle, function); found != CUDA_SUCCESS) return found;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult entry::cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset,
                                   std::size_t* size) {
  Function* function = nullptr;
  if (const CUresult found = find_asked(handle, function); found != CUDA_SUCCESS) return found;
  return parameter_info(function->code, index, offset, size);
}

CUresult entry::cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = function->loaded.load(std::memory_order_relaxed) ? CU_FUNCTION_LOADING_STATE_LOADED
                                                            : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}

CUresult entry::cuFuncLoad(CUfunction handle) {
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, function); found != CUDA_SUCCESS) return found;
  function->loaded.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
