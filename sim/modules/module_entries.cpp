// SPDX-License-Identifier: Apache-2.0
// cuModule*.
#include "base/driver_log.h"
#include "base/settings.h"
#include "context/context.h"
#include "entry/entry.h"
#include "modules/jit_options.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

/// A module by its handle, for the calls that look into one.
CUresult find_module(CUmodule handle, Module*& out) noexcept {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  out = object_of<Module>(handle);
  return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int isa_of(const Context& context) noexcept { return static_cast<int>(context.device.limits.cc.number()); }

CUresult load(CUmodule* out, const void* image, const JitOptions& options) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  if (out == nullptr || image == nullptr || !options.valid()) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<ImageSet> images;
  std::string message;
  CUresult result = ImageSet::from_memory(image, true, images);
  if (result == CUDA_SUCCESS) result = load_module(*context, std::move(images), out, &message);
  write_logs(options, message);
  return result == CUDA_SUCCESS ? result : explain_image(result, isa_of(*context), message);
}

}  // namespace

CUresult entry::cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image, {}); }

CUresult entry::cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                                   CUjit_option* options, void** values) {
  return load(module, image, {count, options, values});
}

CUresult entry::cuModuleLoadFatBinary(CUmodule* module, const void* fatbin) {
  return load(module, fatbin, {});
}

CUresult entry::cuModuleLoad(CUmodule* module, const char* path) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<ImageSet> images;
  if (const CUresult result = ImageSet::from_file(path, images); result != CUDA_SUCCESS) return result;
  std::string message;
  const CUresult result = load_module(*context, std::move(images), module, &message);
  return result == CUDA_SUCCESS ? result : explain_image(result, isa_of(*context), message);
}

CUresult entry::cuModuleUnload(CUmodule module) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  return unload_module(module);
}

CUresult entry::cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = settings().eager ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult entry::cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  Module* module = nullptr;
  if (const CUresult found = find_module(handle, module); found != CUDA_SUCCESS) return found;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Function* made = module->function(name);
  if (made == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = made->handle<CUfunction>();
  return CUDA_SUCCESS;
}

CUresult entry::cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  if (const CUresult found = find_module(handle, module); found != CUDA_SUCCESS) return found;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->code->kernel_names().size());
  return CUDA_SUCCESS;
}

CUresult entry::cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  if (const CUresult found = find_module(handle, module); found != CUDA_SUCCESS) return found;
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned written = 0;
  return each_function(handle, [&](CUfunction function) {
    if (written < count) functions[written++] = function;
  });
}

CUresult entry::cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule handle,
                                     const char* name) {
  Module* module = nullptr;
  if (const CUresult found = find_module(handle, module); found != CUDA_SUCCESS) return found;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Variable* variable = module->variable(name);
  if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->size;
  return CUDA_SUCCESS;
}

namespace {

template <class Reference>
CUresult get_reference(Reference* out, CUmodule handle, const char* name) {
  Module* module = nullptr;
  if (const CUresult found = find_module(handle, module); found != CUDA_SUCCESS) return found;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::string* const reference = module->reference(name);
  if (reference == nullptr) return CUDA_ERROR_NOT_FOUND;
  *out = reinterpret_cast<Reference>(const_cast<std::string*>(reference));  // whose calls all answer 801
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuModuleGetTexRef(CUtexref* out, CUmodule handle, const char* name) {
  return get_reference(out, handle, name);
}

CUresult entry::cuModuleGetSurfRef(CUsurfref* out, CUmodule handle, const char* name) {
  return get_reference(out, handle, name);
}

}  // namespace kshim::sim
