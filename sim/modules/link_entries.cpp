// SPDX-License-Identifier: Apache-2.0
// cuLink*.
#include "context/context.h"
#include "entry/entry.h"
#include "modules/file_bytes.h"
#include "modules/linker.h"

namespace kshim::sim {
namespace {

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  const JitOptions jit{count, options, values};
  if (out == nullptr || !jit.valid()) return CUDA_ERROR_INVALID_VALUE;
  *out = (new Linker(context->device, jit))->handle<CUlinkState>();
  return CUDA_SUCCESS;
}

CUresult add_data(CUlinkState handle, CUjitInputType type, const void* data, std::size_t size) {
  auto* linker = object_of<Linker>(handle);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  return linker->add(type, Bytes(static_cast<const std::byte*>(data), size));
}

CUresult add_file(CUlinkState handle, CUjitInputType type, const char* path) {
  if (object_of<Linker>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = file_bytes(path);
  return bytes ? add_data(handle, type, bytes->data(), bytes->size()) : CUDA_ERROR_FILE_NOT_FOUND;
}

}  // namespace

CUresult entry::cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  return create(count, options, values, out);
}
CUresult entry::cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  return create(count, options, values, out);
}

CUresult entry::cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                              const char*, unsigned int, CUjit_option*, void**) {
  return add_data(state, type, data, size);
}
CUresult entry::cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                                 const char*, unsigned int, CUjit_option*, void**) {
  return add_data(state, type, data, size);
}

CUresult entry::cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                              CUjit_option*, void**) {
  return add_file(state, type, path);
}
CUresult entry::cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                                 CUjit_option*, void**) {
  return add_file(state, type, path);
}

CUresult entry::cuLinkComplete(CUlinkState state, void** out, std::size_t* size) {
  auto* linker = object_of<Linker>(state);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  void* made = nullptr;
  std::size_t bytes = 0;
  if (const CUresult result = linker->complete(made, bytes); result != CUDA_SUCCESS) return result;
  if (out != nullptr) *out = made;
  if (size != nullptr) *size = bytes;
  return CUDA_SUCCESS;
}

CUresult entry::cuLinkDestroy(CUlinkState state) {
  const auto* linker = object_of<Linker>(state);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  delete linker;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
