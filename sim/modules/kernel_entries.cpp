// SPDX-License-Identifier: Apache-2.0
// cuKernel*. A foreign pointer gives 400: the runtime passes the address of a host stub where it has no
// kernel.
#include "context/context.h"
#include "entry/entry.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

CUresult find_kernel(CUkernel handle, Kernel*& out) noexcept {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  out = object_of<Kernel>(handle);
  return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// The kernel as the image for one device has it.
struct Place {
  const Device* device = nullptr;
  std::shared_ptr<const Code> code;
  const KernelCode* kernel = nullptr;
};

CUresult locate(Kernel& kernel, CUdevice ordinal, Place& out) {
  out.device = device_at(ordinal);
  if (out.device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (const CUresult result = kernel.library.images->code_for(*out.device, out.code);
      result != CUDA_SUCCESS) {
    return result;
  }
  out.kernel = out.code->kernel(kernel.name);
  return out.kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

CUresult entry::cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  Function* function = nullptr;
  const CUresult result = find_function(handle, *context, function);
  if (result == CUDA_SUCCESS) *out = function->handle<CUfunction>();
  return result;
}

CUresult entry::cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = kernel->library.handle<CUlibrary>();
  return CUDA_SUCCESS;
}

CUresult entry::cuKernelGetName(const char** name, CUkernel handle) {
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult entry::cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                     CUdevice device) {
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Place place;
  if (const CUresult result = locate(*kernel, device, place); result != CUDA_SUCCESS) return result;
  return function_attribute(*place.kernel, kernel->settings(*place.device), *place.device, attribute, *value);
}

CUresult entry::cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                     CUdevice device) {
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  Place place;
  if (const CUresult result = locate(*kernel, device, place); result != CUDA_SUCCESS) return result;
  return set_function_attribute(*place.kernel, kernel->settings(*place.device), *place.device, attribute,
                                value);
}

CUresult entry::cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
    return CUDA_ERROR_INVALID_VALUE;
  Place place;
  return locate(*kernel, device, place);
}

CUresult entry::cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t* offset,
                                     std::size_t* size) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel* kernel = nullptr;
  if (const CUresult found = find_kernel(handle, kernel); found != CUDA_SUCCESS) return found;
  std::shared_ptr<const Code> code;
  if (const CUresult result = kernel->library.any_code(code); result != CUDA_SUCCESS) return result;
  const KernelCode* with = code->kernel(kernel->name);
  return with != nullptr ? parameter_info(*with, index, offset, size) : CUDA_ERROR_NOT_FOUND;
}

}  // namespace kshim::sim
