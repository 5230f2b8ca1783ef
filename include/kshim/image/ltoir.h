// SPDX-License-Identifier: Apache-2.0
// LTO-IR and nvJitLink. No driver loads LTO-IR.
#pragma once
#include "kshim/image/select.h"

namespace kshim::image {

/// nvJitLink accepts LTO-IR where a driver accepts PTX of the same architecture. A module with such an image
/// has no gap for the GPU: the library links the image itself.
inline bool links_for(const Candidate& image, ComputeCapability device) noexcept {
  return image.kind == ImageKind::ltoir && judge({ImageKind::ptx, image.arch, {}}, {device, {}, {}}).fits;
}

}  // namespace kshim::image
