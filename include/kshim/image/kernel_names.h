// SPDX-License-Identifier: Apache-2.0
// The names of all kernels in an image, whatever its kind. No heap.
#pragma once
#include <algorithm>

#include "kshim/image/cubin.h"
#include "kshim/image/payload.h"
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

/// Whether an image has kernels.
enum class HasKernels : std::uint8_t { no, yes, unreadable };

/// To see which of its modules have kernels at all, so many bytes of a file are decompressed, the cheapest
/// module first (`look_cost` of its cheapest image). The others are taken to have kernels until a verdict
/// depends on them alone.
constexpr std::uint64_t kMaxLook = std::uint64_t{12} << 20;
/// The bytes of its start that nearly always show whether an image has kernels.
constexpr std::uint64_t look_cost(Compression compression, std::uint64_t clear) noexcept {
  return std::min<std::uint64_t>(clear, compression == Compression::zstd ? kZstdBlock : kLz4Start);
}

/// `read(size)` gives the first bytes of the image in the clear, at most so many, all of them with `clear`,
/// its size; what it returns is false where it cannot. In a cubin the names of the sections come first, and
/// each kernel has a bank of constants for its parameters. Where the start shows no kernel, all of the image
/// decides.
template <class Read>
HasKernels find_kernels(ImageKind kind, Compression compression, std::uint64_t clear, Read&& read) {
  const auto find_first = [kind](Bytes bytes, bool& any) {
    return each_kernel_name(kind, bytes, [&any](std::string_view) {
      any = true;
      return false;
    });
  };
  for (std::uint64_t size = look_cost(compression, clear); size < clear;
       size = size < kZstdBlock ? kZstdBlock : clear) {
    const auto start = read(size);
    if (!start) return HasKernels::unreadable;
    bool any = false;
    if (kind == ImageKind::cubin)
      any = text_of(*start).find(".nv.constant0.") != std::string_view::npos;
    else
      find_first(*start, any);
    if (any) return HasKernels::yes;
  }
  const auto whole = read(clear);
  bool any = false;
  if (!whole || !find_first(*whole, any)) return HasKernels::unreadable;
  return any ? HasKernels::yes : HasKernels::no;
}

}  // namespace kshim::image
