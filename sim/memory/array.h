// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: plain rows behind an opaque handle. Kernels do not run, so no texture unit's layout matters.
#pragma once
#include <atomic>

#include "base/driver_api.h"
#include "base/handles.h"

namespace kshim::sim {

struct Context;

struct Array : Handled<Kind::array> {
  Array(Context& in, const CUDA_ARRAY3D_DESCRIPTOR& described, std::size_t element_bytes,
        std::uintptr_t memory) noexcept;
  Context& context;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const std::size_t pitch;   ///< bytes a row
  const std::size_t rows;    ///< at least 1
  const std::size_t slices;  ///< depth, layers or faces: at least 1
  const std::uintptr_t base;
  std::uintptr_t row(std::size_t y, std::size_t z) const noexcept { return base + (z * rows + y) * pitch; }
};

/// Bytes an element (all channels) takes; 0 for a format or channel count that arrays do not have.
std::size_t element_bytes(CUarray_format format, unsigned channels) noexcept;

}  // namespace kshim::sim
