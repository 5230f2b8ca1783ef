// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/image_counts.h"

#include <algorithm>
#include <map>

namespace kshim::analysis {

std::vector<ImageCount> count_images(const DeviceCode& code) {
  const bool linked = std::any_of(code.images.begin(), code.images.end(),
                                  [](const CodeImage& image) { return !image.relocatable; });
  // A hostile file has as many architectures as images, which are millions: never search them one by one.
  std::map<Program, ImageCount> rows;
  for (const CodeImage& image : code.images) {
    // In a linked file, the cubin of a relocatable part was the linker's input and is no driver's.
    if (linked && image.relocatable && image.candidate.kind != image::ImageKind::ptx) continue;
    ImageCount& row =
        rows.try_emplace(program_of(image.candidate), ImageCount{image.candidate}).first->second;
    ++row.count;
    row.bytes += image.bytes;
    row.stored += image.payload.size();
  }
  std::vector<ImageCount> out;
  out.reserve(rows.size());
  for (const auto& [name, row] : rows) out.push_back(row);
  return out;
}

}  // namespace kshim::analysis
