// SPDX-License-Identifier: Apache-2.0
// The cuMemcpy functions: each describes its copy and passes it on.
#include "context/context.h"
#include "entry/entry.h"
#include "memory/allocations.h"
#include "memory/copy.h"

namespace kshim::sim {
namespace {

constexpr auto kHost = CU_MEMORYTYPE_HOST;
constexpr auto kDevice = CU_MEMORYTYPE_DEVICE;
constexpr auto kUnified = CU_MEMORYTYPE_UNIFIED;

std::uintptr_t number(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

/// One row of an array, from byte `offset` of it.
CUDA_MEMCPY3D from_array(CUDA_MEMCPY3D copy, CUarray array, std::size_t offset) noexcept {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = offset;
  return copy;
}
CUDA_MEMCPY3D to_array(CUDA_MEMCPY3D copy, CUarray array, std::size_t offset) noexcept {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstXInBytes = offset;
  return copy;
}

/// Contexts of a peer copy must be there; which device holds what makes no difference here.
CUresult check_peers(CUcontext to, CUcontext from) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const bool known = object_of<Context>(to) != nullptr && object_of<Context>(from) != nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& p) noexcept {
  CUDA_MEMCPY3D c{};
  c.srcXInBytes = p.srcXInBytes, c.srcY = p.srcY, c.srcZ = p.srcZ, c.srcMemoryType = p.srcMemoryType;
  c.srcHost = p.srcHost, c.srcDevice = p.srcDevice, c.srcArray = p.srcArray, c.srcPitch = p.srcPitch;
  c.srcHeight = p.srcHeight;
  c.dstXInBytes = p.dstXInBytes, c.dstY = p.dstY, c.dstZ = p.dstZ, c.dstMemoryType = p.dstMemoryType;
  c.dstHost = p.dstHost, c.dstDevice = p.dstDevice, c.dstArray = p.dstArray, c.dstPitch = p.dstPitch;
  c.dstHeight = p.dstHeight;
  c.WidthInBytes = p.WidthInBytes, c.Height = p.Height, c.Depth = p.Depth;
  return c;
}

}  // namespace

CUresult entry::cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  return copy_memory(linear_copy(kUnified, to, kUnified, from, size), std::nullopt);
}
CUresult entry::cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  return copy_memory(linear_copy(kUnified, to, kUnified, from, size), stream);
}
CUresult entry::cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t size) {
  return copy_memory(linear_copy(kDevice, to, kHost, number(from), size), std::nullopt);
}
CUresult entry::cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t size, CUstream stream) {
  return copy_memory(linear_copy(kDevice, to, kHost, number(from), size), stream);
}
CUresult entry::cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t size) {
  return copy_memory(linear_copy(kHost, number(to), kDevice, from, size), std::nullopt);
}
CUresult entry::cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t size, CUstream stream) {
  return copy_memory(linear_copy(kHost, number(to), kDevice, from, size), stream);
}
CUresult entry::cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  return copy_memory(linear_copy(kDevice, to, kDevice, from, size), std::nullopt);
}
CUresult entry::cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  return copy_memory(linear_copy(kDevice, to, kDevice, from, size), stream);
}

CUresult entry::cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             std::size_t size) {
  if (const CUresult result = check_peers(to_context, from_context); result != CUDA_SUCCESS) return result;
  return copy_memory(linear_copy(kDevice, to, kDevice, from, size), std::nullopt);
}
CUresult entry::cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, std::size_t size, CUstream stream) {
  if (const CUresult result = check_peers(to_context, from_context); result != CUDA_SUCCESS) return result;
  return copy_memory(linear_copy(kDevice, to, kDevice, from, size), stream);
}

CUresult entry::cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_memory(planar_copy(*copy), std::nullopt);
}
CUresult entry::cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return entry::cuMemcpy2D_v2(copy); }
CUresult entry::cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_memory(planar_copy(*copy), stream);
}
CUresult entry::cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_memory(*copy, std::nullopt);
}
CUresult entry::cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_memory(*copy, stream);
}
CUresult entry::cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_memory(without_contexts(*copy), std::nullopt);
}
CUresult entry::cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_memory(without_contexts(*copy), stream);
}

CUresult entry::cuMemcpyHtoA_v2(CUarray to, std::size_t offset, const void* from, std::size_t size) {
  return copy_memory(to_array(linear_copy(kDevice, 0, kHost, number(from), size), to, offset), std::nullopt);
}
CUresult entry::cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset, const void* from, std::size_t size,
                                     CUstream stream) {
  return copy_memory(to_array(linear_copy(kDevice, 0, kHost, number(from), size), to, offset), stream);
}
CUresult entry::cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset, std::size_t size) {
  return copy_memory(from_array(linear_copy(kHost, number(to), kDevice, 0, size), from, offset),
                     std::nullopt);
}
CUresult entry::cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset, std::size_t size,
                                     CUstream stream) {
  return copy_memory(from_array(linear_copy(kHost, number(to), kDevice, 0, size), from, offset), stream);
}
CUresult entry::cuMemcpyDtoA_v2(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t size) {
  return copy_memory(to_array(linear_copy(kDevice, 0, kDevice, from, size), to, offset), std::nullopt);
}
CUresult entry::cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t size) {
  return copy_memory(from_array(linear_copy(kDevice, to, kDevice, 0, size), from, offset), std::nullopt);
}
CUresult entry::cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                                std::size_t size) {
  const CUDA_MEMCPY3D copy = linear_copy(kDevice, 0, kDevice, 0, size);
  return copy_memory(to_array(from_array(copy, from, from_offset), to, to_offset), std::nullopt);
}

}  // namespace kshim::sim
