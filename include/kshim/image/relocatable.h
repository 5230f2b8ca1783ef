// SPDX-License-Identifier: Apache-2.0
// Relocatable device code (nvcc -rdc=true), which the driver links when it loads it where the linked fatbin
// has no image that fits: from one image of each part. Libraries bring parts of their own: libcudadevrt has
// PTX for one architecture and cubins for the others. So the PTX of one part says nothing of the program.
// No heap.
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

inline std::optional<std::size_t> ptx_of(std::span<const Candidate> part, Arch level) noexcept {
  const auto found = std::find_if(part.begin(), part.end(), [&](const Candidate& image) {
    return image.kind == ImageKind::ptx && image.arch == level;
  });
  if (found == part.end()) return {};
  return static_cast<std::size_t>(found - part.begin());
}

/// Calls take(number of the part, number of its image) for the PTX that the program can be compiled from.
/// `levels`: the architectures of the PTX of all parts, in ascending order. each_part(visit) calls
/// visit(images) for each part, always in the same order, until it answers false. An image may be taken more
/// than once.
/// The lowest architecture for which every part has something makes the first program; a higher one makes
/// another if each part whose PTX is in the first has PTX of it.
template <class EachPart, class Take>
void each_linkable_ptx(std::span<const Arch> levels, const EachPart& each_part, const Take& take) {
  std::optional<Arch> first;
  for (const Arch level : levels) {
    bool whole = true;
    bool any = false;
    each_part([&](std::span<const Candidate> part) {
      if (part.empty()) return true;
      const LinkInput base = link_input(part, first.value_or(level));
      any = any || base.ptx;
      whole = first ? !base.ptx || ptx_of(part, level).has_value() : base.fits;
      return whole;
    });
    if (!whole || !any) continue;
    std::size_t number = 0;
    each_part([&](std::span<const Candidate> part) {
      const LinkInput base = link_input(part, first.value_or(level));
      if (base.ptx) take(number, first ? *ptx_of(part, level) : *base.ptx);
      ++number;
      return true;
    });
    if (!first) first = level;
  }
}

}  // namespace kshim::image
