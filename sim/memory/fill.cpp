// SPDX-License-Identifier: Apache-2.0
#include "memory/fill.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream_host.h"
#include "memory/allocations.h"
#include "memory/host_room.h"

namespace kshim::sim {
namespace {

CUDA_MEMSET_NODE_PARAMS rectangle(CUdeviceptr at, std::size_t pitch, unsigned value, unsigned element,
                                  std::size_t width, std::size_t height) noexcept {
  return {at, pitch, value, element, width, height};
}
CUDA_MEMSET_NODE_PARAMS line(CUdeviceptr at, unsigned value, unsigned element, std::size_t count) noexcept {
  return rectangle(at, 0, value, element, count, 1);
}

CUresult check_shape(const CUDA_MEMSET_NODE_PARAMS& f) noexcept {
  if (f.elementSize != 1 && f.elementSize != 2 && f.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (f.width == 0 || f.height == 0) return CUDA_SUCCESS;
  if (f.dst == 0 || f.dst % f.elementSize != 0 || f.width > PTRDIFF_MAX / f.elementSize)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t row = f.width * f.elementSize;
  if (f.height > 1 && (f.pitch < row || f.pitch % f.elementSize != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (f.height > 1 && f.pitch > PTRDIFF_MAX / f.height) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

bool is_there(const CUDA_MEMSET_NODE_PARAMS& f) noexcept {
  return f.width == 0 || f.height == 0 ||
         covers(address_of(f.dst), (f.height - 1) * f.pitch + f.width * f.elementSize);
}

}  // namespace

CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS& fill) noexcept {
  const CUresult shape = check_shape(fill);
  return shape == CUDA_SUCCESS && !is_there(fill) ? CUDA_ERROR_INVALID_VALUE : shape;
}

void FillOperation::execute() {
  if (!is_there(params)) {
    log_line(LogLevel::info, "a graph's memset of memory that is not there is left out");
    return;
  }
  if (params.value == 0 && params.height == 1 &&
      make_zero(address_of(params.dst), params.width * params.elementSize))
    return;
  auto* row = static_cast<std::byte*>(pointer_of(params.dst));
  for (std::size_t y = 0; y < params.height; ++y, row += params.pitch) {
    switch (params.elementSize) {
      case 1:
        std::memset(row, static_cast<int>(params.value & 0xff), params.width);
        break;
      case 2:
        std::fill_n(reinterpret_cast<std::uint16_t*>(row), params.width,
                    static_cast<std::uint16_t>(params.value));
        break;
      default:
        std::fill_n(reinterpret_cast<std::uint32_t*>(row), params.width, params.value);
    }
  }
}

std::unique_ptr<Operation> FillOperation::clone() const { return std::make_unique<FillOperation>(*this); }

CUresult fill_memory(const CUDA_MEMSET_NODE_PARAMS& fill, std::optional<CUstream> handle) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  Stream* stream = any_stream(handle.value_or(CU_STREAM_LEGACY));
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // cuDNN captures memsets of placeholder addresses and replaces these before the launch.
  const bool capturing = stream->capture.load(std::memory_order_acquire) != nullptr;
  if (const CUresult result = capturing ? check_shape(fill) : check_fill(fill); result != CUDA_SUCCESS)
    return result;
  const bool written = !capturing && fill.height == 1 && fill.value != 0;
  if (written) {
    const CUresult room = check_host_room(address_of(fill.dst), fill.width * fill.elementSize);
    if (room != CUDA_SUCCESS) return room;
  }
  if (!handle.has_value()) {
    if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  }
  FillOperation operation(fill);
  const CUresult result = enqueue(*stream, operation);
  if (result == CUDA_SUCCESS && !handle.has_value()) wait_for(*stream);
  return result;
}

CUresult entry::cuMemsetD8_v2(CUdeviceptr at, unsigned char value, std::size_t count) {
  return fill_memory(line(at, value, 1, count), std::nullopt);
}
CUresult entry::cuMemsetD16_v2(CUdeviceptr at, unsigned short value, std::size_t count) {
  return fill_memory(line(at, value, 2, count), std::nullopt);
}
CUresult entry::cuMemsetD32_v2(CUdeviceptr at, unsigned value, std::size_t count) {
  return fill_memory(line(at, value, 4, count), std::nullopt);
}
CUresult entry::cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t count, CUstream stream) {
  return fill_memory(line(at, value, 1, count), stream);
}
CUresult entry::cuMemsetD16Async(CUdeviceptr at, unsigned short value, std::size_t count, CUstream stream) {
  return fill_memory(line(at, value, 2, count), stream);
}
CUresult entry::cuMemsetD32Async(CUdeviceptr at, unsigned value, std::size_t count, CUstream stream) {
  return fill_memory(line(at, value, 4, count), stream);
}
CUresult entry::cuMemsetD2D8_v2(CUdeviceptr at, std::size_t pitch, unsigned char value, std::size_t width,
                                std::size_t height) {
  return fill_memory(rectangle(at, pitch, value, 1, width, height), std::nullopt);
}
CUresult entry::cuMemsetD2D16_v2(CUdeviceptr at, std::size_t pitch, unsigned short value, std::size_t width,
                                 std::size_t height) {
  return fill_memory(rectangle(at, pitch, value, 2, width, height), std::nullopt);
}
CUresult entry::cuMemsetD2D32_v2(CUdeviceptr at, std::size_t pitch, unsigned value, std::size_t width,
                                 std::size_t height) {
  return fill_memory(rectangle(at, pitch, value, 4, width, height), std::nullopt);
}
CUresult entry::cuMemsetD2D8Async(CUdeviceptr at, std::size_t pitch, unsigned char value, std::size_t width,
                                  std::size_t height, CUstream stream) {
  return fill_memory(rectangle(at, pitch, value, 1, width, height), stream);
}
CUresult entry::cuMemsetD2D16Async(CUdeviceptr at, std::size_t pitch, unsigned short value, std::size_t width,
                                   std::size_t height, CUstream stream) {
  return fill_memory(rectangle(at, pitch, value, 2, width, height), stream);
}
CUresult entry::cuMemsetD2D32Async(CUdeviceptr at, std::size_t pitch, unsigned value, std::size_t width,
                                   std::size_t height, CUstream stream) {
  return fill_memory(rectangle(at, pitch, value, 4, width, height), stream);
}

}  // namespace kshim::sim
