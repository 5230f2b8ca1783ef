// SPDX-License-Identifier: Apache-2.0
// Relocatable device code (nvcc -rdc=true), which the driver links when it loads it where the linked fatbin
// has no image that fits: from one image of each part. Libraries bring parts of their own: libcudadevrt has
// PTX for one architecture and cubins for the others. No heap.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "kshim/image/select.h"

namespace kshim::image {

/// What one part adds for a GPU of an architecture: the PTX, by its number, or a cubin.
struct LinkInput {
  bool fits = false;
  std::optional<std::size_t> ptx;
};
inline LinkInput link_input(std::span<const Candidate> part, Arch level) noexcept {
  Platform platform{level.cc, {}, {}};
  const Selection any = select_image(part, platform);
  platform.jit.force_ptx_jit = true;
  const Selection ptx = select_image(part, platform);
  if (ptx.choice == Choice::jit && part[ptx.index].kind == ImageKind::ptx) return {true, ptx.index};
  return {any.choice == Choice::sass, {}};
}

/// Calls take(number of the part, number of its image) for the PTX that the program can be compiled from.
/// `levels`: the architectures of the PTX of all parts, in ascending order. each_part(visit) calls
/// visit(images) for each part, always in the same order, until it answers false. An image may be taken more
/// than once.
/// Each level is a GPU for which the driver links one image of each part, its PTX where it has any: where
/// every part has something, and one of them PTX, there is a program. Parts come from several compilations
/// (NVSHMEM's device library in cuFFTMp has PTX for 12.0, cuFFTMp's own for 7.5 and 8.6), so their PTX need
/// not be for one architecture.
template <class EachPart, class Take>
void each_linkable_ptx(std::span<const Arch> levels, const EachPart& each_part, const Take& take) {
  for (const Arch level : levels) {
    bool whole = true;
    each_part([&](std::span<const Candidate> part) {
      whole = part.empty() || link_input(part, level).fits;
      return whole;
    });
    if (!whole) continue;
    std::size_t number = 0;
    each_part([&](std::span<const Candidate> part) {
      if (const LinkInput input = link_input(part, level); input.ptx) take(number, *input.ptx);
      ++number;
      return true;
    });
  }
}

}  // namespace kshim::image
