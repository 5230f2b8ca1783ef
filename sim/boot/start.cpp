// SPDX-License-Identifier: Apache-2.0
// The first calls of a program: initialization, version, error texts, entry points by name.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "base/settings.h"
#include "boot/export_tables.h"
#include "context/context.h"
#include "device/product.h"
#include "entry/entry.h"
#include "entry/table.h"
#include "kshim/base/cuda_error.h"

namespace kshim::sim {

int driver_version() noexcept { return settings().driver.major * 1000 + settings().driver.minor * 10; }

namespace {

/// CUDA_INJECTION64_PATH. What cannot be opened or has no such function changes nothing.
void inject() {
  static std::atomic<bool> g_done{false};  // the library itself may call cuInit
  const char* const path = secure_getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0' || g_done.exchange(true)) return;
  void* const library = dlopen(path, RTLD_NOW);
  void* const start = library == nullptr ? nullptr : dlsym(library, "InitializeInjection");
  dlerror();
  if (start != nullptr) reinterpret_cast<int (*)()>(start)();
}

}  // namespace

CUresult entry::cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = initialize();
  if (result == CUDA_SUCCESS) inject();
  return result;
}

CUresult entry::cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = driver_version();
  return CUDA_SUCCESS;
}

CUresult entry::cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CudaError* found = find_cuda_error(error);
  *text = found != nullptr ? found->driver_name : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CudaError* found = find_cuda_error(error);
  *text = found != nullptr && found->driver_name != nullptr ? found->message : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t known =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || function == nullptr || (flags & ~known) != 0 || flags == known) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const ProcAddress found = find_proc(symbol, cuda_version, driver_version(), flags);
  *function = found.function;
  if (status != nullptr) *status = found.status;
  return found.function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult entry::cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
  return entry::cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
}

CUresult entry::cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = find_export_table(*id);
  return *table != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// There is no profiler to control here; both calls succeed with no profiler attached (CUDA Driver API,
// Profiler Control).
CUresult entry::cuProfilerStart() { return check_initialized(); }
CUresult entry::cuProfilerStop() { return check_initialized(); }

}  // namespace kshim::sim
