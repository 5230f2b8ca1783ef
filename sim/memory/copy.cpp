// SPDX-License-Identifier: Apache-2.0
#include "memory/copy.h"

#include <cstring>

#include "context/context.h"
#include "graph/capture.h"
#include "launch/stream_host.h"
#include "memory/allocations.h"
#include "memory/array.h"
#include "memory/host_room.h"

namespace kshim::sim {
namespace {

/// One end of a copy with its layout: where row `y` of slice `z` begins.
struct End {
  std::uintptr_t base = 0;
  std::size_t pitch = 0;   ///< bytes from row to row
  std::size_t height = 0;  ///< rows from slice to slice
  std::uintptr_t row(std::size_t y, std::size_t z) const noexcept { return base + (z * height + y) * pitch; }
};

End source(const CUDA_MEMCPY3D& c) noexcept {
  const std::size_t skipped_rows = c.srcZ * c.srcHeight + c.srcY;
  switch (c.srcMemoryType) {
    case CU_MEMORYTYPE_ARRAY: {
      const Array& array = *object_of<Array>(c.srcArray);
      return {array.row(c.srcY, c.srcZ) + c.srcXInBytes, array.pitch, array.rows};
    }
    case CU_MEMORYTYPE_HOST: {
      const auto base = reinterpret_cast<std::uintptr_t>(c.srcHost);
      return {base + skipped_rows * c.srcPitch + c.srcXInBytes, c.srcPitch, c.srcHeight};
    }
    default:
      return {address_of(c.srcDevice) + skipped_rows * c.srcPitch + c.srcXInBytes, c.srcPitch, c.srcHeight};
  }
}

End destination(const CUDA_MEMCPY3D& c) noexcept {
  const std::size_t skipped_rows = c.dstZ * c.dstHeight + c.dstY;
  switch (c.dstMemoryType) {
    case CU_MEMORYTYPE_ARRAY: {
      const Array& array = *object_of<Array>(c.dstArray);
      return {array.row(c.dstY, c.dstZ) + c.dstXInBytes, array.pitch, array.rows};
    }
    case CU_MEMORYTYPE_HOST: {
      const auto base = reinterpret_cast<std::uintptr_t>(c.dstHost);
      return {base + skipped_rows * c.dstPitch + c.dstXInBytes, c.dstPitch, c.dstHeight};
    }
    default:
      return {address_of(c.dstDevice) + skipped_rows * c.dstPitch + c.dstXInBytes, c.dstPitch, c.dstHeight};
  }
}

/// Bytes from the first to behind the last that an end touches.
std::size_t span_of(const End& end, const CUDA_MEMCPY3D& c) noexcept {
  return ((c.Depth - 1) * end.height + c.Height - 1) * end.pitch + c.WidthInBytes;
}

CUresult check_array(CUarray handle, std::size_t x, std::size_t y, std::size_t z,
                     const CUDA_MEMCPY3D& c) noexcept {
  const Array* array = object_of<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool inside = x <= array->pitch && c.WidthInBytes <= array->pitch - x && y <= array->rows &&
                      c.Height <= array->rows - y && z <= array->slices && c.Depth <= array->slices - z;
  return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_linear(CUmemorytype kind, const End& end, std::uintptr_t base,
                      const CUDA_MEMCPY3D& c) noexcept {
  if (base == 0) return CUDA_ERROR_INVALID_VALUE;
  if (c.Height > 1 && end.pitch < c.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t bytes = span_of(end, c);
  switch (kind) {
    case CU_MEMORYTYPE_HOST:
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
      return covers(end.base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_UNIFIED: {
      // An unknown address is the program's own memory; a known range must contain all of it.
      Allocation found;
      if (!find_allocation(end.base, found) || found.kind == MemoryKind::registered) return CUDA_SUCCESS;
      return covers(end.base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool empty(const CUDA_MEMCPY3D& c) noexcept { return c.WidthInBytes == 0 || c.Height == 0 || c.Depth == 0; }

}  // namespace

CUresult check_copy(CUDA_MEMCPY3D& c) noexcept {
  if (c.srcPitch == 0) c.srcPitch = c.WidthInBytes + c.srcXInBytes;
  if (c.dstPitch == 0) c.dstPitch = c.WidthInBytes + c.dstXInBytes;
  if (c.srcHeight == 0) c.srcHeight = c.Height + c.srcY;
  if (c.dstHeight == 0) c.dstHeight = c.Height + c.dstY;
  if (empty(c)) return CUDA_SUCCESS;
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    const CUresult result = check_array(c.srcArray, c.srcXInBytes, c.srcY, c.srcZ, c);
    if (result != CUDA_SUCCESS) return result;
  } else {
    const bool host = c.srcMemoryType == CU_MEMORYTYPE_HOST;
    const auto base = host ? reinterpret_cast<std::uintptr_t>(c.srcHost) : address_of(c.srcDevice);
    const CUresult result = check_linear(c.srcMemoryType, source(c), base, c);
    if (result != CUDA_SUCCESS) return result;
  }
  if (c.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return check_array(c.dstArray, c.dstXInBytes, c.dstY, c.dstZ, c);
  const bool host = c.dstMemoryType == CU_MEMORYTYPE_HOST;
  const auto base = host ? reinterpret_cast<std::uintptr_t>(c.dstHost) : address_of(c.dstDevice);
  return check_linear(c.dstMemoryType, destination(c), base, c);
}

void CopyOperation::execute() {
  if (empty(params)) return;
  // An array may be destroyed before a queued copy or a graph runs; the driver leaves that undefined.
  if (params.srcMemoryType == CU_MEMORYTYPE_ARRAY && object_of<Array>(params.srcArray) == nullptr) return;
  if (params.dstMemoryType == CU_MEMORYTYPE_ARRAY && object_of<Array>(params.dstArray) == nullptr) return;
  const End from = source(params);
  const End to = destination(params);
  for (std::size_t z = 0; z < params.Depth; ++z) {
    for (std::size_t y = 0; y < params.Height; ++y) {
      std::memmove(reinterpret_cast<void*>(to.row(y, z)), reinterpret_cast<const void*>(from.row(y, z)),
                   params.WidthInBytes);
    }
  }
}

std::unique_ptr<Operation> CopyOperation::clone() const { return std::make_unique<CopyOperation>(*this); }

CUDA_MEMCPY3D linear_copy(CUmemorytype to_kind, std::uintptr_t to, CUmemorytype from_kind,
                          std::uintptr_t from, std::size_t size) noexcept {
  CUDA_MEMCPY3D c{};
  c.dstMemoryType = to_kind;
  c.srcMemoryType = from_kind;
  if (to_kind == CU_MEMORYTYPE_HOST) {
    c.dstHost = reinterpret_cast<void*>(to);
  } else {
    c.dstDevice = to;
  }
  if (from_kind == CU_MEMORYTYPE_HOST) {
    c.srcHost = reinterpret_cast<const void*>(from);
  } else {
    c.srcDevice = from;
  }
  c.WidthInBytes = size;
  c.Height = c.Depth = 1;
  return c;
}

CUDA_MEMCPY3D planar_copy(const CUDA_MEMCPY2D& copy) noexcept {
  CUDA_MEMCPY3D c{};
  c.srcXInBytes = copy.srcXInBytes;
  c.srcY = copy.srcY;
  c.srcMemoryType = copy.srcMemoryType;
  c.srcHost = copy.srcHost;
  c.srcDevice = copy.srcDevice;
  c.srcArray = copy.srcArray;
  c.srcPitch = copy.srcPitch;
  c.dstXInBytes = copy.dstXInBytes;
  c.dstY = copy.dstY;
  c.dstMemoryType = copy.dstMemoryType;
  c.dstHost = copy.dstHost;
  c.dstDevice = copy.dstDevice;
  c.dstArray = copy.dstArray;
  c.dstPitch = copy.dstPitch;
  c.WidthInBytes = copy.WidthInBytes;
  c.Height = copy.Height;
  c.Depth = 1;
  return c;
}

CUresult copy_memory(CUDA_MEMCPY3D copy, std::optional<CUstream> handle) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  Stream* stream = any_stream(handle.value_or(CU_STREAM_LEGACY));
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = check_copy(copy); result != CUDA_SUCCESS) return result;
  if (!handle.has_value()) {
    if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  }
  if (copy.Height == 1 && copy.Depth == 1 && copy.dstMemoryType != CU_MEMORYTYPE_ARRAY &&
      copy.WidthInBytes != 0) {
    if (const CUresult room = check_host_room(destination(copy).base, copy.WidthInBytes);
        room != CUDA_SUCCESS)
      return room;
  }
  CopyOperation operation(copy);
  const CUresult result = enqueue(*stream, operation);
  if (result == CUDA_SUCCESS && !handle.has_value()) wait_for(*stream);
  return result;
}

}  // namespace kshim::sim
