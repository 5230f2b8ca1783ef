// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/coverage.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/data/knowledge.h"
#include "kshim/image/decompress.h"

namespace kshim::analysis {

bool serves(const DeviceCode& code, const CodeModule& module, image::ComputeCapability cc,
            image::Version driver) {
  bool any = false;
  each_image_of(module, [&](std::uint32_t index) {
    const CodeImage& image = code.images[index];
    any = any || (image::driver_reads(image.compression, driver) &&
                  image::judge(image.candidate, {cc, driver, {}}).fits);
  });
  return any;
}

bool loaded_by_choice(const DeviceCode& code, std::span<const std::uint32_t> lacking) {
  return !lacking.empty() &&
         std::any_of(code.modules.begin(), code.modules.end(),
                     [](const CodeModule& each) { return !each.embedded; }) &&
         std::all_of(lacking.begin(), lacking.end(), [&](std::uint32_t index) {
           return code.modules[index].embedded && code.modules[index].count == 1;
         });
}

BuiltBy builder_of(std::span<const ImageFact> images, image::Version cubins) {
  if (cubins.known()) return {cubins, "its cubins say so"};
  image::Version isa;
  for (const ImageFact& image : images) {
    if (image.candidate.kind == image::ImageKind::ptx) isa = std::max(isa, image.candidate.isa);
  }
  const ToolkitRow* row = isa.known() ? toolkit_of_isa(isa) : nullptr;
  if (row == nullptr) return {};
  BuiltBy out{row->version, fmt::format("its PTX is of version {}", image::to_name(isa).view())};
  // PTX may be older than the file: cuFFT of CUDA 13.0 has PTX 7.8 beside cubins for sm_110.
  for (const ImageFact& image : images) {
    const ToolkitRow* first = first_toolkit_for(image.candidate.arch);
    if (first == nullptr || !(out.toolkit < first->version)) continue;
    out.toolkit = first->version;
    out.how =
        fmt::format("its {} takes it", image::to_name(image.candidate.kind, image.candidate.arch).view());
  }
  return out;
}

}  // namespace kshim::analysis
