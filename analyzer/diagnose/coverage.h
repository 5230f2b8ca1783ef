// SPDX-License-Identifier: Apache-2.0
// What a file has for a GPU: one answer for reports, files and logs.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyzer/core/facts.h"
#include "analyzer/device_code/device_code.h"
#include "kshim/image/arch.h"

namespace kshim::analysis {

/// Whether a driver runs something of the module on the GPU. What it cannot decompress does not count.
bool serves(const DeviceCode& code, const CodeModule& module, image::ComputeCapability cc,
            image::Version driver);

/// Code that was deliberately locked to one architecture or family: beside code that was not, the program has
/// another way.
template <class Images>
bool all_locked(const Images& images) {
  for (const auto& image : images) {
    if (image.candidate.arch.suffix == image::Suffix::none && image.candidate.kind != image::ImageKind::ltoir)
      return false;
  }
  return true;
}

/// What lacks code are modules of one image that the program loads by its own choice, and everything that the
/// runtime registers is served: PyTorch 2.15 embeds kernels of CuTe DSL so, one module a kernel and GPU.
bool loaded_by_choice(const DeviceCode& code, std::span<const std::uint32_t> lacking);

/// Who built a file, and how that is known: what its cubins say, else the newest PTX, whose version is that
/// of the toolkit. `cubins`: the newest toolkit that they name, unknown where none does.
struct BuiltBy {
  image::Version toolkit;
  std::string how;
};
BuiltBy builder_of(std::span<const ImageFact> images, image::Version cubins);

}  // namespace kshim::analysis
