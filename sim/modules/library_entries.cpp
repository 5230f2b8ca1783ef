// SPDX-License-Identifier: Apache-2.0
// cuLibrary*. Libraries are of no context; what has an address in a device (modules, variables) is asked for
// in one.
#include "base/driver_log.h"
#include "base/settings.h"
#include "context/context.h"
#include "entry/entry.h"
#include "modules/jit_options.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

CUresult find_library(CUlibrary handle, Library*& out) noexcept {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  out = object_of<Library>(handle);
  return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult publish(std::unique_ptr<ImageSet> images, CUlibrary* out) {
  auto library = std::make_unique<Library>(std::move(images));
  if (settings().library_rule == LibraryRule::load && !library->images->empty()) {
    if (const CUresult result = library->judge(); result != CUDA_SUCCESS) return result;
  }
  *out = library.release()->handle<CUlibrary>();
  return CUDA_SUCCESS;
}

/// The module of the calling thread's context.
CUresult module_of(CUlibrary handle, Module*& out) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  const CUresult result = library->module_in(*context, out);
  return result == CUDA_SUCCESS ? result : library->explain_missing(result);
}

}  // namespace

CUresult entry::cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                                  void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                                  void** values, unsigned int count) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  const JitOptions jit{jit_count, jit_options, jit_values};
  if (library == nullptr || code == nullptr || !jit.valid()) return CUDA_ERROR_INVALID_VALUE;
  if (count != 0 && options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool preserved = false;
  for (unsigned i = 0; i < count; ++i) {
    // cuBLAS names the option and passes no values at all for memory that it frees.
    if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) preserved = values != nullptr && values[i] != nullptr;
  }
  std::unique_ptr<ImageSet> images;
  const CUresult read = ImageSet::from_memory(code, !preserved, images);
  write_logs(jit, {});
  return read != CUDA_SUCCESS ? read : publish(std::move(images), library);
}

CUresult entry::cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                                      void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                                      void** /*values*/, unsigned int count) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  const JitOptions jit{jit_count, jit_options, jit_values};
  if (library == nullptr || !jit.valid()) return CUDA_ERROR_INVALID_VALUE;
  if (count != 0 && options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<ImageSet> images;
  // With lazy loading a card takes any file that it can open: tests/sim/ledger. Eager: assumed to look.
  const CUresult read = ImageSet::from_file(path, images, !settings().eager);
  write_logs(jit, {});
  return read != CUDA_SUCCESS ? read : publish(std::move(images), library);
}

CUresult entry::cuLibraryUnload(CUlibrary handle) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  delete library;
  return CUDA_SUCCESS;
}

CUresult entry::cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel* kernel = nullptr;
  const CUresult result = library->kernel(name, kernel);
  if (result == CUDA_SUCCESS) {
    *out = kernel->handle<CUkernel>();
  } else if (result != CUDA_ERROR_NOT_FOUND) {
    library->explain_missing(result);
    explain(result, "Kernel (" + std::string(name) + ") cannot be found in library due to compilation error");
  }
  return result;
}

CUresult entry::cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const Code> code;
  const CUresult result = library->any_code(code);
  if (result == CUDA_SUCCESS) *count = static_cast<unsigned>(code->kernel_names().size());
  return result;
}

CUresult entry::cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary handle) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const Code> code;
  if (const CUresult result = library->any_code(code); result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count && i < code->kernel_names().size(); ++i) {
    kernels[i] = library->kernel_named(code->kernel_names()[i]).handle<CUkernel>();
  }
  return CUDA_SUCCESS;
}

CUresult entry::cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  const CUresult result = module_of(handle, module);
  if (result == CUDA_SUCCESS) *out = module->handle<CUmodule>();
  return result;
}

CUresult entry::cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
                                   const char* name) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  if (const CUresult result = module_of(handle, module); result != CUDA_SUCCESS) return result;
  const Variable* variable = module->variable(name);
  if (variable == nullptr)
    return module->code->has_kernel(name) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->size;
  return CUDA_SUCCESS;
}

CUresult entry::cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
                                    const char* name) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Variable variable;
  const CUresult result = library->managed(name, variable);
  if (result != CUDA_SUCCESS) return result;
  if (address != nullptr) *address = variable.address;
  if (bytes != nullptr) *bytes = variable.size;
  return CUDA_SUCCESS;
}

// No image here has a function that host and device call at one address.
CUresult entry::cuLibraryGetUnifiedFunction(void** out, CUlibrary handle, const char* name) {
  Library* library = nullptr;
  if (const CUresult found = find_library(handle, library); found != CUDA_SUCCESS) return found;
  std::shared_ptr<const Code> code;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = library->any_code(code); result != CUDA_SUCCESS) return result;
  return code->has_kernel(name) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

}  // namespace kshim::sim
