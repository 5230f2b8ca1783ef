// SPDX-License-Identifier: Apache-2.0
// What nvJitLink makes of LTO-IR, which no driver loads.
#pragma once
#include "kshim/image/select.h"

namespace kshim::image {

/// nvJitLink takes LTO-IR where a driver would take PTX of the same architecture. A module with such an image
/// lacks nothing for the GPU: the library links it itself.
inline bool links_for(const Candidate& image, ComputeCapability device) noexcept {
  return image.kind == ImageKind::ltoir && judge({ImageKind::ptx, image.arch, {}}, {device, {}, {}}).fits;
}

}  // namespace kshim::image
