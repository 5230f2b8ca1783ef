// SPDX-License-Identifier: Apache-2.0
// The names of all kernels in an image, whatever its kind. No heap.
#pragma once
#include "kshim/image/cubin.h"
#include "kshim/image/ptx.h"

namespace kshim::image {

/// Calls visit(mangled name) -> bool (false stops) for each kernel of a cubin or PTX that is not compressed.
/// False if the image cannot be read to its end, and for LTO-IR.
template <class Visit>
bool each_kernel_name(ImageKind kind, Bytes clear, Visit&& visit) {
  const auto walk = [&](auto&& next) {
    for (std::uint64_t cursor = 0;;) {
      const auto kernel = next(cursor);
      if (!kernel) return kernel.error().code == Errc::not_found;
      if (!visit(kernel->name)) return true;
    }
  };
  if (kind == ImageKind::cubin) {
    const auto cubin = CubinReader::open(clear);
    return cubin && walk([&](std::uint64_t& cursor) { return cubin->next_name(cursor); });
  }
  if (kind == ImageKind::ptx) {
    const auto ptx = PtxReader::open(clear);
    return ptx && walk([&](std::uint64_t& cursor) { return ptx->next_brief(cursor); });
  }
  return false;
}

}  // namespace kshim::image
